"""Pairwise algorithms from a connected start (figures 6.18 to 6.20)."""

from __future__ import annotations

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

ONE_WAY = {"COR-BAL": "one-way", "LLF-BAL": "largest-load-first", "RAND-BAL": "random"}
IMPROVED = {
    "COR-SE-IMP": "improved-selective-exchange",
    "COR-RE-IMP": "improved-redistribution",
}
GLOBAL = "COR-GLB"
_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_SHORT_S = 5.0
_TABLE = "balancing-pairwise"


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Latency and moved load of pairwise algorithms whose chains start on one node each."""
    levels = (0.7, 0.9) if quick else _LEVELS
    seeds = 2 if quick else SEEDS
    names = [*ONE_WAY, *IMPROVED, GLOBAL]
    at = levels[-1 if quick else -2]
    points = [
        (name, level, seed, 10.0) for level in levels for seed in range(seeds) for name in names
    ]
    points += [(name, at, seed, _SHORT_S) for seed in range(seeds) for name in ONE_WAY]
    found = run(measure, points, say)
    table = records(_TABLE, [record for record in found if record["window_s"] != _SHORT_S])
    short = records(
        f"{_TABLE}-short", [record for record in found if record["window_s"] == _SHORT_S]
    )
    setup = (
        f"20 nodes, 20 chains, each on a node of its own at first, {seeds} seeds; algorithms begin "
        "after 10 s and are measured for 200 s from then on. COR-GLB is in place from the start. "
        f"The one-way three also with a statistics window of {_SHORT_S:g} s, half a period."
    )
    figures = tuple(
        Figure(
            f"{_TABLE}-{name}", _TABLE, "level", column, by="algorithm", log_y=name == "latency",
            title="Pairwise algorithms from a connected start", x_label="system load level",
            y_label=label,
        )
        for name, column, label in (
            ("latency", "latency_ratio", "latency ratio"),
            ("moved", "moved_load", "load moved, in nodes"),
        )
    )  # fmt: skip
    rows = (*_rows(table, at), *_short_rows(short, at))
    return StudyReport(_TABLE, rows, (table, short), figures, setup)


def measure(point: tuple[str, float, int, float]) -> dict[str, Value]:
    """One algorithm at one load level, with samples of a second."""
    name, level, seed, window_s = point
    setup = Setup(level, seed, window_s=window_s, samples=round(window_s))
    workload = workload_of(setup)
    if name == GLOBAL:
        start, policy = global_plan(setup, workload, "global").assignment, "off"
    else:
        start, policy = workload.connected, {**ONE_WAY, **IMPROVED}[name]
    found = run_of(setup, start, policy, warm_s=10, measured_s=200)
    return {"algorithm": name, "level": level, "seed": seed, "window_s": window_s, **found}


def _rows(table: ResultTable, level: float) -> list[Row]:
    def latency(name: str) -> float:
        return mean_by(table, "latency_ratio", algorithm=name, level=level)

    def moved(name: str) -> float:
        return mean_by(table, "moved_load", algorithm=name, level=level)

    rivals = min(latency("LLF-BAL"), latency("RAND-BAL"))
    improved = max(latency("COR-SE-IMP"), latency("COR-RE-IMP"))
    at = f"at {level:g}"
    return [
        within(f"COR-BAL's latency over the other one-way two's {at}", None,
               latency("COR-BAL") / rivals, high=1.0,
               note="ours: no difference; a window of exactly one period sees means that never "
               "change, so hardly anything moves, and the operators of a chain score alike"),
        within(f"COR-BAL's latency over COR-GLB's {at}", None,
               latency("COR-BAL") / latency(GLOBAL), low=1.5, note="far from the global plan"),
        within(f"the improved two's latency over COR-BAL's {at}", None,
               improved / latency("COR-BAL"), high=0.7, note="far better"),
        within(f"load moved by COR-RE-IMP over COR-SE-IMP {at}", None,
               moved("COR-RE-IMP") / moved("COR-SE-IMP"), low=1.5, note="much more"),
        within(f"COR-RE-IMP's latency over COR-SE-IMP's {at}", None,
               latency("COR-RE-IMP") / latency("COR-SE-IMP"), low=1.0,
               note="the source: moving so much costs more than the better plan gains"),
    ]  # fmt: skip


def _short_rows(short: ResultTable, level: float) -> list[Row]:
    """With half a period in the window means keep changing, and the source's order appears."""
    found = {name: mean_by(short, "latency_ratio", algorithm=name) for name in ONE_WAY}
    return [
        within(
            f"COR-BAL's latency over {name}'s at {level:g}, window of half a period", None,
            found["COR-BAL"] / found[name], high=1.0, note="COR-BAL is the best of the three",
        )
        for name in ("LLF-BAL", "RAND-BAL")
    ]  # fmt: skip
