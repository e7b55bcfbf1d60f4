"""BOSe: broadcast-aware operator selection, from the shortest broadcast back towards the server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.model.devices import INDEXED
from penstock.power.cuts import CutTable
from penstock.power.energy import energy_of
from penstock.power.kernels.reinstating import reinstate, values_of
from penstock.power.min_data_cut import min_data_cut
from penstock.power.min_power_cut import own_energy_j

SAME = 1e-12
"""Changes that differ by less than this part of all energy are equal: sums are not exact."""


@dataclass(frozen=True)
class BoseStep:
    """One reinstatement: a query's next cut, and by how much it changes the energy of all."""

    query: int
    entry: int
    change_j: float


def bose(table: CutTable) -> Ints:
    """The plan of BOSe; never above MinDataCut, and MinPowerCut's for the indexed broadcast.

    From MinDataCut on it takes, again and again, the cut nearer the root of any query that lowers
    the energy of the actual broadcast most; of equal ones the first query, then the shortest step.
    When none lowers it, steps that change nothing are taken as far as they go: of equal cuts that
    nearest the root costs a device less.
    """
    entries = min_data_cut(table)
    for step in bose_steps(table):
        entries[step.query] = step.entry
    return entries


def bose_steps(table: CutTable) -> list[BoseStep]:
    """What BOSe reinstates, in its order.

    Every candidate cut keeps what its query would cost all others and itself there. A step of one
    query changes that by a term that depends on the two sizes only, so a step takes one pass over
    the candidates, O(n L) for n queries of L cuts, and nothing is summed up again.
    """
    near = _towards_root(table, min_data_cut(table))
    queries, entries, changes = reinstate(
        near.starts, near.sizes, near.keys, near.owners, near.weights, near.values_j,
        near.coupling, near.tolerance_j,
    )  # fmt: skip
    return [
        BoseStep(int(query), int(entry + near.offsets[query]), float(change))
        for query, entry, change in zip(queries, entries, changes, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The entries from the starting plan to the roots: what BOSe can choose from."""

    starts: Ints
    offsets: Ints
    sizes: Floats
    keys: Floats
    owners: Ints
    weights: Floats
    values_j: Floats
    coupling: float
    tolerance_j: float


def _towards_root(table: CutTable, plan: Ints) -> _Candidates:
    entries = np.arange(len(table.sizes))
    kept = entries >= plan[table.owners]
    starts = np.concatenate(([0], np.cumsum(table.starts[1:] - plan)))
    sizes, keys, owners = table.sizes[kept], table.keys[kept], table.owners[kept]
    values = own_energy_j(table)[kept]
    # Results with an index cost their own listeners only: nothing couples the queries.
    coupling = 0.0 if table.broadcast.organisation == INDEXED else table.seconds_per_byte
    if coupling:
        values += coupling * values_of(sizes, keys, owners, starts[:-1], table.weights)
    tolerance = SAME * energy_of(table, plan).total_j
    return _Candidates(
        starts, plan - starts[:-1], sizes, keys, owners, table.weights, values, coupling, tolerance
    )
