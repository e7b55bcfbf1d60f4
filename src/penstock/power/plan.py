"""Plans of all algorithms side by side: cuts, energy, length of the cycle, and the bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError, listed, suggestion
from penstock.load.arrays import Ints
from penstock.power.bose import bose
from penstock.power.cuts import CutTable
from penstock.power.energy import Energy, cycle_bytes, energy_of
from penstock.power.exhaustive import exhaustive, is_small
from penstock.power.lower_bound import lower_bound_j
from penstock.power.min_data_cut import min_data_cut
from penstock.power.min_power_cut import min_power_cut
from penstock.power.server_ops import server_ops

CutAlgorithm = Callable[[CutTable], Ints]

SERVER_OPS, MIN_DATA_CUT, MIN_POWER_CUT = "server-ops", "min-data-cut", "min-power-cut"
BOSE, EXHAUSTIVE = "bose", "exhaustive"

ALGORITHMS: Mapping[str, CutAlgorithm] = {
    SERVER_OPS: server_ops,
    MIN_DATA_CUT: min_data_cut,
    MIN_POWER_CUT: min_power_cut,
    BOSE: bose,
    EXHAUSTIVE: exhaustive,
}


@dataclass(frozen=True, eq=False)
class PowerPlan:
    """Where every query is cut, by whom that was decided, and what it costs in a cycle."""

    algorithm: str
    entries: Ints
    cuts: Mapping[str, int]
    energy: Energy
    cycle_bytes: float


@dataclass(frozen=True, eq=False)
class PlanComparison:
    """The plans of all algorithms, and the joules that no plan goes below."""

    table: CutTable
    plans: tuple[PowerPlan, ...]
    lower_bound_j: float

    def plan_of(self, algorithm: str) -> PowerPlan:
        """The plan of one algorithm; raises where there is none."""
        names = [plan.algorithm for plan in self.plans]
        if algorithm not in names:
            hint = f"There are {listed(names)}. {suggestion(algorithm, names)}".strip()
            raise InputError(f"no algorithm {algorithm}", hint=hint)
        return next(plan for plan in self.plans if plan.algorithm == algorithm)

    @property
    def best_first(self) -> list[PowerPlan]:
        """The plans by energy; of equal ones the simplest algorithm first."""
        return sorted(self.plans, key=lambda plan: plan.energy.total_j)


def compare(table: CutTable) -> PlanComparison:
    """Every algorithm's plan; that of the exhaustive search only where the case is small."""
    plans = tuple(
        plan_by(name, table) for name in ALGORITHMS if name != EXHAUSTIVE or is_small(table)
    )
    best = min(plans, key=lambda plan: plan.energy.total_j)
    # Where all plans were gone through, the best of them is the bound.
    bound = np.inf if is_small(table) else lower_bound_j(table, best.entries)
    return PlanComparison(table, plans, min(bound, best.energy.total_j))


def plan_by(algorithm: str, table: CutTable) -> PowerPlan:
    """The plan of the algorithm of this name."""
    entries = ALGORITHMS[algorithm](table)
    cuts = dict(zip(table.names, table.cut_numbers(entries).tolist(), strict=True))
    energy = energy_of(table, entries)
    return PowerPlan(algorithm, entries, cuts, energy, cycle_bytes(table, entries))
