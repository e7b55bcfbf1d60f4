"""Global algorithms at growing load, nothing moved afterwards (figures 6.14, 6.15, table 6.3)."""

from __future__ import annotations

from penstock.studies.balancing_runs import (
    SEEDS,
    Setup,
    at_every_level,
    global_plan,
    run_of,
    workload_of,
)
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import mean_by, numbers
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

NAMES = {
    "COR-GLB": "global",
    "LLF-GLB": "global-largest-load-first",
    "RAND-GLB": "global-random",
}
_LEVELS = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_TABLE = "balancing-global"
_DEVIATIONS = "balancing-global-deviation"


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Latency, deviation and correlation of three global plans."""
    levels = (0.3, 0.7, 0.9) if quick else _LEVELS
    seeds = 2 if quick else SEEDS
    table = records(_TABLE, run(measure, at_every_level(NAMES, levels, seeds), say))
    setup = (
        f"20 nodes, 200 operators, {seeds} seeds; planned from the statistics of 10 s, then run "
        "anew with the plan in place: 200 s measured after 20 s."
    )
    tables = (table, _deviations(table))
    return StudyReport(_TABLE, tuple(_rows(table)), tables, _figures(), setup)


def measure(point: tuple[str, float, int]) -> dict[str, Value]:
    """One plan at one load level."""
    name, level, seed = point
    setup = Setup(level, seed)
    start = global_plan(setup, workload_of(setup), NAMES[name]).assignment
    found = run_of(setup, start, "off", warm_s=20, measured_s=200)
    return {"algorithm": name, "level": level, "seed": seed, **found}


def _deviations(table: ResultTable) -> ResultTable:
    """The deviations of all plans, and the least there could be as one more."""
    columns = ("algorithm", "level", "seed", "deviation")
    found = [tuple(row) for row in zip(*(table.column(column) for column in columns), strict=True)]
    least = zip(
        *(table.column(name) for name in ("level", "seed", "least_deviation", "algorithm")),
        strict=True,
    )
    found += [
        ("least", level, seed, deviation)
        for level, seed, deviation, name in least
        if name == "COR-GLB"
    ]
    return ResultTable(_DEVIATIONS, columns, tuple(found))


def _figures() -> tuple[Figure, ...]:
    return (
        Figure(
            "balancing-global-latency", _TABLE, "level", "latency_ratio", by="algorithm",
            log_y=True, title="Global plans, static", x_label="system load level",
            y_label="latency ratio",
        ),
        Figure(
            _DEVIATIONS, _DEVIATIONS, "level", "deviation", by="algorithm",
            title="Mean load deviation of the nodes", x_label="system load level",
            y_label="standard deviation",
        ),
    )  # fmt: skip


def _rows(table: ResultTable) -> list[Row]:
    levels = sorted(set(numbers(table.column("level"))))
    rows = []
    for level in levels:
        ours = mean_by(table, "latency_ratio", algorithm="COR-GLB", level=level)
        best = min(
            mean_by(table, "latency_ratio", algorithm=name, level=level)
            for name in ("LLF-GLB", "RAND-GLB")
        )
        rows.append(
            within(
                f"COR-GLB's latency over the better rival's at {level:g}", None, ours / best,
                high=1.0 if level >= 0.5 else 1.1, note="clearly lower from about 0.5 on",
            )
        )  # fmt: skip
    for level in (levels[-2], levels[-1]):
        found, least = (
            mean_by(table, column, algorithm="COR-GLB", level=level)
            for column in ("deviation", "least_deviation")
        )
        rows.append(
            within(
                f"COR-GLB's deviation over the least at {level:g}", None, found / least, high=1.3
            )
        )
    for name, low, high in (("COR-GLB", 0.5, 1), ("LLF-GLB", -0.2, 0.3), ("RAND-GLB", -0.2, 0.3)):
        found = mean_by(table, "correlation", algorithm=name)
        note = "the total load varies, too, which all nodes share" if name != "COR-GLB" else ""
        rows.append(within(f"{name}: mean correlation of node pairs", None, found, low, high, note))
    return rows
