"""Exhaustive search: the least energy there is, for small cases."""

from __future__ import annotations

import math

import numpy as np

from penstock.errors import InputError
from penstock.load.arrays import Ints
from penstock.model.devices import INDEXED
from penstock.power.bose import SAME, bose
from penstock.power.cuts import CutTable
from penstock.power.energy import energy_of
from penstock.power.kernels.searching import least_plan
from penstock.power.min_power_cut import own_energy_j

MOST_PLANS = 1_000_000


def plans_of(table: CutTable) -> int:
    """How many plans there are."""
    return math.prod(np.diff(table.starts).tolist())


def is_small(table: CutTable) -> bool:
    """Whether all plans can be gone through."""
    return plans_of(table) <= MOST_PLANS


def exhaustive(table: CutTable) -> Ints:
    """The plan of least energy; of equal ones that with cuts nearest the root, first query first.

    Parts of plans that already cost as much as the best whole one are not gone into.
    """
    if not is_small(table):
        raise InputError(
            f"{plans_of(table):.1g} plans are too many to try",
            hint=f"Exhaustive search is for up to {MOST_PLANS:,}; bose comes close to it.",
        )
    start = bose(table)
    coupling = 0.0 if table.broadcast.organisation == INDEXED else table.seconds_per_byte
    return least_plan(
        table.starts, table.sizes, table.keys, table.weights, own_energy_j(table), coupling,
        start, SAME * energy_of(table, start).total_j,
    )  # fmt: skip
