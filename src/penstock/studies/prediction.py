"""Prediction: a deployment simulated with measured costs, and the same on real nodes.

Two runs at different rates tell for every fragment what a batch costs in itself and what a row
costs. From that the simulator predicts runs that have not been: another rate, another placement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.load.batches import BatchWork
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.sim.micro_batches import MicroBatches
from penstock.sim.row_feeds import EvenRows
from penstock.studies.figures import Figure
from penstock.studies.live_system import LiveSystem, Watched
from penstock.studies.report import ResultTable, Row, Runner, Say, StudyReport, Value, within
from penstock.studies.running import one_by_one
from penstock.studies.traffic import ROUND_S, SMALL, watched, workload

CALIBRATION = (("rod", 0.5), ("rod", 2.0))
PREDICTED = (("rod", 1.0), ("largest-load", 1.5), ("connected", 1.0))
_WARM_S, _MEASURED_S = 40.0, 60.0
TRAFFIC = replace(
    SMALL,
    aggregates={
        name: SMALL.aggregates[name] for name in ("second_by_source", "last_10s_by_source")
    },
)
"""Aggregates whose work grows with rows; that by pairs of hosts grows with the pairs seen."""
_WARM_RUNS, _STILL_FALLING = 8, 0.03
"""Everything gets cheaper while Java compiles, for many minutes; a run that is this part cheaper
than the one before it is still of that time."""
_SIMULATED_S, _RUNS = 1_000.0, 20
"""When rounds begin relative to each other stays the same during a run, so there are several."""
_AIM = 0.15
_COLUMNS = ("placement", "multiplier", "quantity", "predicted", "measured", "error")


@dataclass(frozen=True)
class Cost:
    """What a fragment or an intake uses of a core: ``fixed``, and ``per_rate`` for a row/s."""

    fixed: float
    per_rate: float

    def load(self, rate_per_s: float) -> float:
        return self.fixed + self.per_rate * rate_per_s


@dataclass(frozen=True)
class Point:
    """One run: where fragments and intakes were and what they used, and what came of it.

    ``rate_per_s`` is what came in on each stream, ``taken_per_s`` what each fragment has read.
    There is no latency where no results came.
    """

    rate_per_s: float
    assignment: Mapping[str, str]
    loads: Mapping[str, float]
    taken_per_s: Mapping[str, float]
    utilisation: Mapping[str, float]
    latency_s: float | None


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Measures, predicts, and runs what was predicted."""
    predicted = PREDICTED[:1] if quick else PREDICTED
    warm_s, measured_s = (4.0, 6.0) if quick else (_WARM_S, _MEASURED_S)
    with workload(TRAFFIC) as (live, folder):

        def run_of(placement: str, multiplier: float) -> Point:
            say(f"{placement} at {multiplier:g}")
            seconds = warm_s + measured_s
            seen = watched(live, TRAFFIC, folder, placement, multiplier, seconds, say)
            return _point(
                live, TRAFFIC.rate_per_s * multiplier, seen.since(seen.looks[0].at_s + warm_s)
            )

        _warm(lambda: run_of(*CALIBRATION[-1]), say, 1 if quick else _WARM_RUNS)
        before = [run_of(*setting) for setting in CALIBRATION]
        real = [run_of(*setting) for setting in predicted]
        # Java goes on compiling for long, and everything gets cheaper meanwhile.
        after = before if quick else [run_of(*setting) for setting in CALIBRATION]
        costs = fitted(*map(between, before, after))
        rows = []
        for (placement, multiplier), point in zip(predicted, real, strict=True):
            rows += _compared(placement, multiplier, costs, point)
    table = ResultTable("prediction", _COLUMNS, tuple(rows))
    return StudyReport(
        "prediction", tuple(_findings(table)), (table,), _drawn(), _setup(warm_s, measured_s)
    )


def _warm(run: Callable[[], Point], say: Say, most: int) -> None:
    """The same run until it costs what it did the time before, ``most`` times at the utmost."""
    say("warming up")
    load = sum(run().loads.values())
    for _ in range(most - 1):
        last, load = load, sum(run().loads.values())
        say(f"warming up: {load:.2f} of a core, {last:.2f} before")
        if load > last * (1 - _STILL_FALLING):
            return


def _point(live: LiveSystem, rate_per_s: float, seen: Watched) -> Point:
    latencies = seen.latencies_s()
    return Point(
        rate_per_s,
        seen.assignment,
        {name: seen.grown_per_s(name, "cpu_ms") / 1_000 for name in seen.assignment},
        {name: seen.grown_per_s(name, "rows_in") for name in TRAFFIC.query_names()},
        {node: seen.mean_utilisation(node) for node in live.nodes},
        float(np.mean(latencies)) if latencies else None,
    )


def between(first: Point, second: Point) -> Point:
    """The same run halfway between two times: what units used then, on average."""
    loads = {name: (first.loads[name] + second.loads[name]) / 2 for name in first.loads}
    return replace(first, loads=loads)


def fitted(low: Point, high: Point) -> dict[str, Cost]:
    """The line through two runs for every fragment and intake; no part of it is below zero."""
    found = {}
    for name in low.loads:
        more = high.loads[name] - low.loads[name]
        per_rate = max(0.0, more / (high.rate_per_s - low.rate_per_s))
        found[name] = Cost(max(0.0, low.loads[name] - per_rate * low.rate_per_s), per_rate)
    return found


def simulated(
    costs: Mapping[str, Cost], assignment: Mapping[str, str], rate_per_s: float, nodes: list[str]
) -> tuple[dict[str, float], float]:
    """The utilisation of every node and the mean latency, batch by batch.

    This is the model of ``penstock simulate``; intakes bring their rows in as often as fragments
    take them.
    """
    names = list(assignment)
    network = AbstractNetwork(
        tuple(AbstractInput(f"rows of {name}") for name in names),
        tuple(
            AbstractOperator(
                name, (f"rows of {name}",), costs[name].per_rate, fixed_cpu=costs[name].fixed
            )
            for name in names
        ),
        tuple(AbstractNode(node) for node in nodes),
    )
    where = [nodes.index(assignment[name]) for name in names]
    work = dict.fromkeys(names, BatchWork(ROUND_S))
    used, latencies_s = np.zeros(len(nodes)), []
    for seed in range(_RUNS):
        rows = EvenRows([rate_per_s] * len(names))
        batches = MicroBatches(network, rows, where, seed, work)
        batches.advance(_SIMULATED_S)
        used += batches.statistics().utilisation / _RUNS
        latencies_s.append(batches.latencies().mean_s)
    return dict(zip(nodes, used.tolist(), strict=True)), float(np.mean(latencies_s))


def taken_per_s(
    costs: Mapping[str, Cost], assignment: Mapping[str, str], rate_per_s: float
) -> float:
    """How many rows all fragments together read: on a full node all of them fall behind alike."""
    loads = dict.fromkeys(assignment.values(), 0.0)
    for name, node in assignment.items():
        loads[node] += costs[name].load(rate_per_s)
    return sum(rate_per_s / max(1.0, loads[assignment[name]]) for name in TRAFFIC.query_names())


def _compared(
    placement: str, multiplier: float, costs: Mapping[str, Cost], real: Point
) -> list[tuple[Value, ...]]:
    rate_per_s = TRAFFIC.rate_per_s * multiplier
    nodes = list(real.utilisation)
    used, latency_s = simulated(costs, real.assignment, rate_per_s, nodes)
    through_per_s = taken_per_s(costs, real.assignment, rate_per_s)
    pairs: list[tuple[str, float, float | None]] = [
        *((f"utilisation of {node}", used[node], real.utilisation[node]) for node in nodes),
        ("rows/s", through_per_s, sum(real.taken_per_s.values())),
        ("latency, s", latency_s, real.latency_s),
    ]
    return [
        (placement, multiplier, quantity, round(ours, 4), *_beside(ours, theirs))
        for quantity, ours, theirs in pairs
    ]


def _beside(predicted: float, measured: float | None) -> tuple[float | None, float | None]:
    """What was measured, and by how much the prediction is off; nothing where nothing was."""
    if not measured:
        return measured, None
    return round(measured, 4), round(predicted / measured - 1, 4)


def _findings(table: ResultTable) -> list[Row]:
    """The worst error of every kind of quantity."""
    found = []
    for what, limit in (("utilisation", _AIM), ("rows/s", None), ("latency", None)):
        errors = [
            abs(float(row[-1])) for row in table.rows
            if str(row[2]).startswith(what) and row[-1] is not None
        ]  # fmt: skip
        found.append(
            within(f"largest error of {what}", None, round(max(errors, default=0.0), 3), high=limit)
        )
    return found


def _drawn() -> tuple[Figure, ...]:
    return (
        Figure(
            "prediction",
            "prediction",
            "predicted",
            "measured",
            "quantity",
            kind="scatter",
            title="Predicted and measured",
            x_label="predicted",
            y_label="measured",
            log_x=True,
            log_y=True,
        ),
    )


def _setup(warm_s: float, measured_s: float) -> str:
    return (
        "The aggregates by source of the study traffic. Calibrated by "
        + " and ".join(f"{name} at {multiplier:g}" for name, multiplier in CALIBRATION)
        + f" times its rates, before and after all others, {measured_s:g} s each after {warm_s:g} "
        "s; utilisation is of a node's one core, latency of the oldest row of a batch until its "
        "results are out."
    )
