"""What ordering by weight gains where receivers differ, and how far BOSe is from the optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from penstock.load.arrays import Floats
from penstock.power.bose import bose
from penstock.power.cuts import CutTable
from penstock.power.energy import energy_of
from penstock.power.exhaustive import exhaustive
from penstock.power.lower_bound import lower_bound_j
from penstock.studies.placement_runs import mean_by, numbers
from penstock.studies.power_runs import RATIO, RUNS, PowerWorkload, workload_table
from penstock.studies.report import ResultTable, Row, Value, within
from penstock.studies.seeds import rng_of

_LISTENERS = 1_000
_SMALL = 20


def _receiving_powers(queries: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    return rng.uniform(0.5, 2.0, queries), np.ones(queries)


def _one_to_five(queries: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    listeners = rng.integers(1, 6, queries).astype(np.float64)
    return listeners, listeners


def _zipf(exponent: float) -> Callable[[int, np.random.Generator], tuple[Floats, Floats]]:
    """Listeners that each choose a query by its rank; every query has one at least."""

    def drawn(queries: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        chances = np.arange(1, queries + 1) ** -exponent
        chosen = rng.multinomial(_LISTENERS - queries, chances / chances.sum())
        listeners = rng.permutation(chosen + 1).astype(np.float64)
        return listeners, listeners

    return drawn


SCENES: Mapping[str, Callable[[int, np.random.Generator], tuple[Floats, Floats]]] = {
    "receiving power 0.5 to 2 W": _receiving_powers,
    "1 to 5 listeners a query": _one_to_five,
    "Zipf popularity, exponent 1": _zipf(1.0),
    "Zipf popularity, exponent 2": _zipf(2.0),
}


def gains_of(number: int) -> list[dict[str, Value]]:
    """One set: percent that the weighted order saves, for BOSe's cuts and with its own."""
    found: list[dict[str, Value]] = []
    for scene, draw in SCENES.items():
        tuning, total = [], []
        for run in range(RUNS):
            rng = rng_of("power-weighted", number, run)
            by_size = _with_listeners(
                workload_table(PowerWorkload(), "sorted", RATIO, rng), draw, rng
            )
            by_weight = replace(
                by_size, broadcast=replace(by_size.broadcast, organisation="weighted")
            )
            plan, own_plan = bose(by_size), bose(by_weight)
            before, after = energy_of(by_size, plan), energy_of(by_weight, plan)
            tuning.append(100 * (1 - after.tuning_j / before.tuning_j))
            total.append(100 * (1 - energy_of(by_weight, own_plan).total_j / before.total_j))
        found.append(
            {
                "scene": scene,
                "set": number,
                "tuning_saved_percent": float(np.mean(tuning)),
                "energy_saved_percent": float(np.mean(total)),
            }
        )
    return found


def _with_listeners(
    table: CutTable,
    draw: Callable[[int, np.random.Generator], tuple[Floats, Floats]],
    rng: np.random.Generator,
) -> CutTable:
    watts, listeners = draw(len(table.names), rng)
    return replace(
        table,
        weights=watts,
        clients=listeners.astype(np.int64),
        processing_j=table.processing_j * listeners[table.owners],
    )


def optimum_of(number: int) -> list[dict[str, Value]]:
    """One set: BOSe over the lower bound on usual workloads, and over the optimum of small ones."""
    found: list[dict[str, Value]] = []
    for run in range(RUNS):
        table = workload_table(PowerWorkload(), "sorted", RATIO, rng_of("power", number, run))
        plan = bose(table)
        ratio = energy_of(table, plan).total_j / lower_bound_j(table, plan)
        found.append({"case": "50 queries, 10 levels", "set": number, "over_least": ratio})
    rng = rng_of("power-optimum", number)
    for _ in range(_SMALL):
        small = PowerWorkload(queries=int(rng.integers(2, 6)), levels=int(rng.integers(2, 8)))
        table = workload_table(small, "sorted", RATIO, rng)
        ratio = energy_of(table, bose(table)).total_j / energy_of(table, exhaustive(table)).total_j
        found.append({"case": "2 to 5 queries, 2 to 7 levels", "set": number, "over_least": ratio})
    return found


def weighted_rows(gains: ResultTable, optimum: ResultTable) -> list[Row]:
    """What goes beyond the source; it has no numbers for any of this."""
    rows = []
    for scene in SCENES:
        saved = mean_by(gains, "energy_saved_percent", scene=scene)
        tuning = mean_by(gains, "tuning_saved_percent", scene=scene)
        note = f"{tuning:.3g} % of tuning with the same cuts; not in the source"
        rows.append(
            within(f"weighted under sorted, {scene}: BOSe, %", None, saved, low=0.0, note=note)
        )
    for case, against in (
        ("50 queries, 10 levels", "the lower bound"),
        ("2 to 5 queries, 2 to 7 levels", "the optimum"),
    ):
        ratios = numbers(optimum.where(case=case).column("over_least"))
        note = f"worst {max(ratios):.4g}; not in the source"
        rows.append(
            within(f"{case}: BOSe over {against}, mean", None, float(np.mean(ratios)), low=1.0,
                   note=note)
        )  # fmt: skip
    return rows
