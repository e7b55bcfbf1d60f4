"""Load raised from 0.5 to 0.8 after a global plan (figures 6.16, 6.17)."""

from __future__ import annotations

from penstock.sim.balancing import BalancedSystem
from penstock.studies.balancing_global import NAMES
from penstock.studies.balancing_runs import (
    SEEDS,
    Setup,
    drained,
    global_plan,
    outcome,
    simulated,
    workload_of,
)
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import mean_by
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    records,
    within,
)
from penstock.studies.running import one_by_one
from penstock.studies.seeds import rng_of

_BEFORE, _AFTER = 0.5, 0.8
_TABLE = "balancing-step"


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Three global plans, and largest-load-first between pairs once the load has risen."""
    seeds = 2 if quick else SEEDS
    points = [(name, seed) for seed in range(seeds) for name in NAMES]
    table = records(_TABLE, run(measure, points, say))
    setup = (
        f"20 nodes, 200 operators, {seeds} seeds; after 20 s at {_BEFORE} each input's rate is "
        f"multiplied by its own random factor, together {_AFTER / _BEFORE:g}, and pairs are "
        "balanced largest load first every second; 200 s measured."
    )
    figures = tuple(
        Figure(
            f"{_TABLE}-{name}", _TABLE, "algorithm", column, kind="dots",
            title=f"After the load has risen from {_BEFORE} to {_AFTER}: a dot a seed, their mean",
            x_label="global plan before", y_label=label,
        )
        for name, column, label in (
            ("latency", "latency_ratio", "latency ratio"),
            ("moved", "moved_load", "load moved, in nodes"),
        )
    )  # fmt: skip
    return StudyReport(_TABLE, tuple(_rows(table)), (table,), figures, setup)


def measure(point: tuple[str, int]) -> dict[str, Value]:
    """One plan through the rise."""
    name, seed = point
    setup = Setup(_BEFORE, seed)
    workload = workload_of(setup)
    start = global_plan(setup, workload, NAMES[name]).assignment
    simulation = simulated(setup, workload, start)
    system = BalancedSystem(simulation, setup.balancing("off"), seed)
    system.advance(20)
    drawn = rng_of("balancing-step", seed).uniform(0.8, 1.2, setup.chains)
    simulation.scale(drawn * _AFTER / _BEFORE / drawn.mean())
    simulation.forget()
    balanced = BalancedSystem(simulation, setup.balancing("largest-load-first"), seed)
    balanced.advance(220)
    return {"algorithm": name, "seed": seed, **outcome(balanced), **drained(simulation)}


def _rows(table: ResultTable) -> list[Row]:
    rows = []
    for column, what, best in (
        ("latency_ratio", "latency", "lowest"),
        ("moved_load", "moved load", "least"),
    ):
        ours = mean_by(table, column, algorithm="COR-GLB")
        for rival in ("LLF-GLB", "RAND-GLB"):
            theirs = mean_by(table, column, algorithm=rival)
            quantity = f"COR-GLB's {what} over {rival}'s"
            note = f"the source: the {best} of the three"
            rows.append(within(quantity, None, ours / theirs, high=1.0, note=note))
    return rows
