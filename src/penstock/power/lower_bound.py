"""What no plan can do better than: a convex relaxation, bounded by Frank-Wolfe.

For given cuts no order needs less tuning energy than that by r = bytes / watts, and with it the
listeners spend, for the watts M(t) of all results with r > t,

    1/2 integral of M(t)^2 dt + 1/2 sum of watts x bytes.

That is convex in M, and M is linear in how the cuts are mixed. Every linearisation of it at some
mixture lies below it everywhere, so its least value over all plans is a bound; Frank-Wolfe moves
the mixture to where that is greatest. For devices and queries that are alike, this is the integral
of N (N + 1) / 2 over the number N of results longer than t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.model.devices import INDEXED
from penstock.power.cuts import CutTable
from penstock.power.energy import energy_of
from penstock.power.kernels.least import least_entries
from penstock.power.min_power_cut import min_power_cut

MOST_ROUNDS = 400
GOOD_GAP = 1e-4
"""Frank-Wolfe ends when the bound is this close to the mixture's own value."""


def lower_bound_j(table: CutTable, start: Ints, rounds: int = MOST_ROUNDS) -> float:
    """Joules that every plan needs at least; ``start`` is any plan, the better the quicker.

    Exact for the indexed broadcast. Otherwise the bound of the best order, which holds for all; a
    round takes O(E) steps for E entries, after sorting them once.
    """
    if table.broadcast.organisation == INDEXED:
        return energy_of(table, min_power_cut(table)).total_j
    relaxed = _relaxation(table)
    waking = float(table.clients.sum()) * table.broadcast.power_up_j
    return waking + _frank_wolfe(relaxed, start, rounds)


@dataclass(frozen=True, eq=False)
class _Relaxation:
    """Entries in the order of r; ``widths`` its steps, ``linear_j`` what is not squared."""

    starts: Ints
    ranks: Ints
    widths: Floats
    watts: Floats
    linear_j: Floats
    seconds_per_byte: float

    def watts_beyond(self, plan: Ints) -> Floats:
        """M(t) of a plan, at every step of r."""
        masses = np.zeros(len(self.widths))
        masses[self.ranks[plan]] = self.watts[plan]
        return np.cumsum(masses[::-1])[::-1]

    def gradient_j(self, beyond: Floats) -> Floats:
        """By how much each entry would raise the energy, at a mixture with these M(t)."""
        waited = np.cumsum(self.widths * beyond)[self.ranks]
        gradient: Floats = self.linear_j + self.seconds_per_byte * self.watts * waited
        return gradient

    def product_j(self, left: Floats, right: Floats) -> float:
        """The integral of the product of two M(t)."""
        return self.seconds_per_byte * float(self.widths @ (left * right))


def _relaxation(table: CutTable) -> _Relaxation:
    watts = table.weights[table.owners]
    r = np.divide(table.sizes, watts, out=np.zeros_like(table.sizes), where=watts > 0)
    order = np.argsort(r, kind="stable")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    linear = 0.5 * table.seconds_per_byte * watts * table.sizes + table.processing_j
    return _Relaxation(
        table.starts, ranks, np.diff(r[order], prepend=0.0), watts, linear, table.seconds_per_byte
    )


def _frank_wolfe(relaxed: _Relaxation, start: Ints, rounds: int) -> float:
    """The greatest bound found; each round mixes in the plan that the linearisation likes best."""
    beyond, linear = relaxed.watts_beyond(start), float(relaxed.linear_j[start].sum())
    bound = 0.0
    for _ in range(rounds):
        gradient = relaxed.gradient_j(beyond)
        squared = relaxed.product_j(beyond, beyond)
        liked = least_entries(relaxed.starts, gradient)
        lowered = squared + linear - float(gradient[liked].sum())
        value = 0.5 * squared + linear
        bound = max(bound, value - lowered)
        if lowered <= GOOD_GAP * value:
            break
        towards = relaxed.watts_beyond(liked) - beyond
        curved = relaxed.product_j(towards, towards)
        share = min(1.0, lowered / curved) if curved > 0 else 1.0
        beyond = beyond + share * towards
        linear += share * (float(relaxed.linear_j[liked].sum()) - linear)
    return bound
