"""Pairwise algorithms from a connected start (figures 6.18 to 6.20)."""

from __future__ import annotations

from penstock.studies.balancing_runs import SEEDS, Setup, global_plan, run_of, workload_of
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import mean_by
from penstock.studies.report import Row, Runner, Say, StudyReport, Table, Value, records, within
from penstock.studies.running import one_by_one

ONE_WAY = {"COR-BAL": "one-way", "LLF-BAL": "largest-load-first", "RAND-BAL": "random"}
IMPROVED = {
    "COR-SE-IMP": "improved-selective-exchange",
    "COR-RE-IMP": "improved-redistribution",
}
GLOBAL = "COR-GLB"
_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_TABLE = "balancing-pairwise"


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Latency and moved load of pairwise algorithms whose chains start on one node each."""
    levels = (0.7, 0.9) if quick else _LEVELS
    seeds = 2 if quick else SEEDS
    names = [*ONE_WAY, *IMPROVED, GLOBAL]
    points = [(name, level, seed) for level in levels for seed in range(seeds) for name in names]
    table = records(_TABLE, run(measured, points, say))
    setup = (
        f"20 nodes, 20 chains, each on a node of its own at first, {seeds} seeds; algorithms begin "
        "after 10 s and are measured for 200 s from then on. COR-GLB is in place from the start."
    )
    figures = tuple(
        Figure(
            f"{_TABLE}-{column}", _TABLE, "level", column, by="algorithm", log_y=column != "moved",
            title="Pairwise algorithms from a connected start", x_label="system load level",
            y_label=label,
        )
        for column, label in (("latency_ratio", "latency ratio"), ("moved_load", "load moved"))
    )  # fmt: skip
    return StudyReport(
        _TABLE, tuple(_rows(table, levels[-1 if quick else -2])), (table,), figures, setup
    )


def measured(point: tuple[str, float, int]) -> dict[str, Value]:
    """One algorithm at one load level."""
    name, level, seed = point
    setup = Setup(level, seed)
    workload = workload_of(setup)
    if name == GLOBAL:
        start, policy = global_plan(setup, workload, "global").assignment, "off"
    else:
        start, policy = workload.connected, {**ONE_WAY, **IMPROVED}[name]
    found = run_of(setup, start, policy, warm_s=10, measured_s=200)
    return {"algorithm": name, "level": level, "seed": seed, **found}


def _rows(table: Table, level: float) -> list[Row]:
    def latency(name: str) -> float:
        return mean_by(table, "latency_ratio", algorithm=name, level=level)

    def moved(name: str) -> float:
        return mean_by(table, "moved_load", algorithm=name, level=level)

    rivals = min(latency("LLF-BAL"), latency("RAND-BAL"))
    improved = max(latency("COR-SE-IMP"), latency("COR-RE-IMP"))
    at = f"at {level:g}"
    return [
        within(f"COR-BAL's latency over the other one-way two's {at}", None,
               latency("COR-BAL") / rivals, high=1.0),
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
