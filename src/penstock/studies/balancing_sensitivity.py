"""How much the parameters matter, one at a time, at load level 0.9 (figure 6.21)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.studies.balancing_runs import SEEDS, Setup, global_plan, run_of, workload_of
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

ALGORITHMS = {
    "COR-GLB": ("global", "off"),
    "COR-SE-IMP": (None, "improved-selective-exchange"),
    "LLF-GLB": ("global-largest-load-first", "off"),
    "LLF-BAL": (None, "largest-load-first"),
}
VARIED: dict[str, tuple[float, ...]] = {
    "nodes": (10, 20, 30),
    "per_node": (2, 5, 10, 20),
    "window_s": (5, 10, 20),
    "samples": (5, 10, 20),
    "period_s": (5, 10, 20),
    "ratio": (2, 4, 8),
}
LABELS = {
    "nodes": "nodes",
    "per_node": "operators per node",
    "window_s": "statistics window in seconds",
    "samples": "samples in the statistics window",
    "period_s": "period of the inputs in seconds",
    "ratio": "high rate / low rate of the inputs",
}
_LEVEL = 0.9
_FEW = 5
_WHY = "the source: flat; but the least deviation of any plan and its queues grow with it, too"
_TABLE = "balancing-sensitivity"


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Latency of two algorithms by correlation and two by load alone."""
    seeds = 1 if quick else SEEDS
    varied = {key: VARIED[key] for key in ("per_node", "ratio")} if quick else VARIED
    points = [
        (key, value, name, seed)
        for key, values in varied.items()
        for value in values
        for seed in range(seeds)
        for name in ALGORITHMS
    ]
    table = records(_TABLE, run(measure, points, say))
    setup = (
        f"20 nodes, 200 operators, load level {_LEVEL}, {seeds} seeds, one parameter varied at a "
        "time; pairwise algorithms start from a random plan; 150 s measured after 20 s."
    )
    figures = tuple(
        Figure(
            _part(key), _part(key), "value", "latency_ratio", by="algorithm", log_y=True,
            title=f"Load level {_LEVEL}", x_label=LABELS[key], y_label="latency ratio",
        )
        for key in varied
    )  # fmt: skip
    parts = tuple(replace(table.where(parameter=key), name=_part(key)) for key in varied)
    return StudyReport(_TABLE, tuple(_rows(table, varied)), (table, *parts), figures, setup)


def _part(key: str) -> str:
    return f"{_TABLE}-{key.replace('_', '-')}"


def measure(point: tuple[str, float, str, int]) -> dict[str, Value]:
    """One algorithm with one parameter changed."""
    key, value, name, seed = point
    changed: dict[str, Any] = {key: type(getattr(Setup(_LEVEL, seed), key))(value)}
    setup = replace(Setup(_LEVEL, seed), **changed)
    workload = workload_of(setup)
    first, then = ALGORITHMS[name]
    start = global_plan(setup, workload, first).assignment if first else workload.scattered
    found = run_of(setup, start, then, warm_s=20, measured_s=150)
    return {"parameter": key, "value": value, "algorithm": name, "seed": seed, **found}


def _rows(table: ResultTable, varied: dict[str, tuple[float, ...]]) -> list[Row]:
    rows = []
    for key, values in varied.items():
        # A few operators per node cannot be balanced well by anybody, as the source says.
        kept = [value for value in values if not (key == "per_node" and value <= _FEW)]
        for name in ("COR-GLB", "LLF-GLB"):
            found = [
                mean_by(table, "latency_ratio", parameter=key, value=value, algorithm=name)
                for value in kept
            ]
            spread = max(found) / min(found)
            limit = 3.0 if name == "COR-GLB" else None
            note = _WHY if limit and spread > limit else ""
            what = f"{key}: {name}'s highest latency over its lowest"
            rows.append(within(what, None, spread, high=limit, note=note))
        worst = max(
            mean_by(table, "latency_ratio", parameter=key, value=value, algorithm="COR-GLB")
            / mean_by(table, "latency_ratio", parameter=key, value=value, algorithm="LLF-GLB")
            for value in kept
        )
        rows.append(
            within(f"{key}: COR-GLB's latency over LLF-GLB's, at worst", None, worst, high=1.0)
        )
    return rows
