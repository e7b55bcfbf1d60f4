"""Unpredictable bursts: a global plan, then its pairwise algorithm (figure 6.22)."""

from __future__ import annotations

from penstock.studies.balancing_runs import (
    SEEDS,
    Setup,
    at_every_level,
    global_plan,
    latency_figure,
    run_of,
    workload_of,
)
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

COMBINED = {
    "COR-GLB-BAL": ("global", "one-way"),
    "COR-GLB-SE-IMP": ("global", "improved-selective-exchange"),
    "COR-GLB-RE-IMP": ("global", "improved-redistribution"),
    "LLF-GLB-BAL": ("global-largest-load-first", "largest-load-first"),
    "RAND-GLB-BAL": ("global-random", "random"),
}
_LEVELS = (0.3, 0.5, 0.6, 0.7, 0.8)
_TABLE = "balancing-bursts"


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Latency of combined algorithms while inputs are on and off at random."""
    levels = (0.5, 0.7) if quick else _LEVELS
    seeds = 2 if quick else SEEDS
    table = records(_TABLE, run(measure, at_every_level(COMBINED, levels, seeds), say))
    setup = (
        f"20 nodes, 200 operators, {seeds} seeds; inputs active and idle for 5 s on average, five "
        "independent ones, the others their opposites or shifted; 300 s measured after 10 s."
    )
    figure = latency_figure(_TABLE, "algorithm", "On-off bursts")
    return StudyReport(_TABLE, tuple(_rows(table, levels)), (table,), (figure,), setup)


def measure(point: tuple[str, float, int]) -> dict[str, Value]:
    """One combination at one load level."""
    name, level, seed = point
    first, then = COMBINED[name]
    setup = Setup(level, seed, workload="bursts")
    start = global_plan(setup, workload_of(setup), first).assignment
    found = run_of(setup, start, then, warm_s=10, measured_s=300)
    return {"algorithm": name, "level": level, "seed": seed, **found}


def _rows(table: ResultTable, levels: tuple[float, ...]) -> list[Row]:
    rows = []
    for level in levels:
        found = {
            name: mean_by(table, "latency_ratio", algorithm=name, level=level) for name in COMBINED
        }
        improved = min(found["COR-GLB-SE-IMP"], found["COR-GLB-RE-IMP"])
        rivals = min(found["LLF-GLB-BAL"], found["RAND-GLB-BAL"])
        rows.append(
            within(
                f"the better improved variant's latency over the better rival's at {level:g}",
                None, improved / rivals, high=1.0,
                note="" if level >= 0.5 else "ours: nothing to gain at so low a load",
            )
        )  # fmt: skip
    return rows
