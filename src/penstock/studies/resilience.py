"""Feasible-set size against the number of operators (figures 6.1 to 6.3 of the source)."""

from __future__ import annotations

import numpy as np

from penstock.place.rod import rod
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import RIVALS, mean_by, ratio, search
from penstock.studies.random_trees import Trees, tree_problem
from penstock.studies.report import ResultTable, Row, Runner, Say, StudyReport, gathered, within
from penstock.studies.running import one_by_one
from penstock.studies.seeds import rng_of

SIZES = (25, 50, 100, 200)
EARLIER = {
    "rod": (0.09, 0.33, 0.67, 0.86),
    "largest-load": (0.05, 0.12, 0.22, 0.30),
    "random": (0.04, 0.09, 0.15, 0.21),
    "connected": (0.05, 0.05, 0.05, 0.05),
}
"""What an earlier, independent check with such trees gave; the source has only curves."""
_APART = 0.08
_RUNS = 10


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """ROD, its local search and the rivals on random trees of growing size."""
    graphs = 6 if quick else 60
    points = [(size, graph) for size in SIZES for graph in range(graphs)]
    table = gathered("resilience", run(measure, points, say))
    figures = (
        Figure(
            "resilience", "resilience", "operators", "ratio", by="algorithm", spread=True,
            title="Feasible-set size, 10 nodes, 5 inputs", x_label="number of operators",
            y_label="volume / ideal volume",
        ),
        Figure(
            "resilience-to-rod", "resilience", "operators", "to_rod", by="algorithm",
            title="Feasible-set size compared with ROD's", x_label="number of operators",
            y_label="volume / ROD's volume",
        ),
    )  # fmt: skip
    setup = (
        f"{graphs} random graphs per size, 10 equal nodes, 5 inputs, a tree each; rivals run "
        f"{_RUNS} times with random rates."
    )
    return StudyReport("resilience", tuple(_rows(table)), (table,), figures, setup)


def measure(point: tuple[int, int]) -> list[dict[str, float | int | str | None]]:
    """The volumes of all algorithms on one graph, the rivals' on average over their runs."""
    size, graph = point
    rng = rng_of("resilience", size, graph)
    problem = tree_problem(Trees(size), rng)
    ours = ratio(problem, rod(problem))
    volumes = {"local-search": ratio(problem, search(problem)), "rod": ours}
    for name, place in RIVALS.items():
        volumes[name] = float(np.mean([ratio(problem, place(problem, rng)) for _ in range(_RUNS)]))
    return [
        {
            "operators": size,
            "graph": graph,
            "algorithm": name,
            "ratio": volume,
            "to_rod": volume / ours,
        }
        for name, volume in volumes.items()
    ]


def _rows(table: ResultTable) -> list[Row]:
    rows = []
    for name, known in EARLIER.items():
        for size, before in zip(SIZES, known, strict=True):
            ours = mean_by(table, "ratio", operators=size, algorithm=name)
            note = f"an earlier check gave {before}"
            quantity = f"{name}, {size} operators: volume of ideal"
            low, high = max(0.0, before - _APART), before + _APART
            rows.append(within(quantity, None, ours, low, high, note))
    return [*rows, *_claims(table)]


def _claims(table: ResultTable) -> list[Row]:
    def mean(name: str, size: int) -> float:
        return mean_by(table, "ratio", operators=size, algorithm=name)

    lead = min(mean("rod", size) / max(mean(rival, size) for rival in RIVALS) for size in SIZES)
    bottom = min(
        min(mean(rival, size) for rival in ("largest-load", "random")) / mean("connected", size)
        for size in SIZES[1:]
    )
    second = min(mean("correlation", size) / mean("largest-load", size) for size in SIZES)
    gain = min(mean("local-search", size) / mean("rod", size) for size in SIZES)
    return [
        within("ROD over the best rival, least of all sizes", None, lead, low=1.0),
        within("correlation over largest-load, least of all sizes", None, second, low=1.0),
        within("ROD approaches the ideal: at 200 operators", None, mean("rod", 200), low=0.8),
        within(
            "connected is worst from 50 operators on: the others over it", None, bottom, low=1.0
        ),
        within("local search over ROD, least of all sizes", None, gain, low=1.0, note="ours"),
    ]
