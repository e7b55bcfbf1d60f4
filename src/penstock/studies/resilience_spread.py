"""How much rivals vary from run to run (figure 6.4 of the source)."""

from __future__ import annotations

import numpy as np

from penstock.place.rod import rod
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import RIVALS, numbers, ratio
from penstock.studies.random_trees import Trees, tree_problem
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    gathered,
    within,
)
from penstock.studies.running import one_by_one
from penstock.studies.seeds import rng_of

SIZES = (25, 50, 100, 200)
RUNS = 500


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """500 runs of every rival on each of a few graphs, compared with ROD's one plan."""
    graphs, runs = (4, 200) if quick else (8, RUNS)
    points = [(size, graph, runs) for size in SIZES for graph in range(graphs)]
    table = gathered("resilience-spread", run(measure, points, say))
    figure = Figure(
        "resilience-spread", "resilience-spread", "operators", "to_rod", by="algorithm",
        spread=True, title=f"{runs} runs of each rival: mean and 10 % to 90 %",
        x_label="number of operators", y_label="volume / ROD's volume",
    )  # fmt: skip
    setup = f"{runs} runs of each rival on {graphs} graphs per size, 10 equal nodes, 5 inputs."
    return StudyReport("resilience-spread", tuple(_rows(table)), (table,), (figure,), setup)


def measure(point: tuple[int, int, int]) -> list[dict[str, Value]]:
    """The volume of every run of every rival over ROD's on one graph."""
    size, graph, runs = point
    rng = rng_of("resilience-spread", size, graph)
    problem = tree_problem(Trees(size), rng)
    ours = ratio(problem, rod(problem), 7)
    return [
        {
            "operators": size,
            "graph": graph,
            "algorithm": name,
            "to_rod": ratio(problem, place(problem, rng), 7) / ours,
        }
        for name, place in RIVALS.items()
        for _ in range(runs)
    ]


def _percentiles(table: ResultTable, name: str, percent: float) -> list[float]:
    """A percentile of a rival's runs, for each graph."""
    graphs = dict.fromkeys(zip(table.column("operators"), table.column("graph"), strict=True))
    return [
        float(np.percentile(numbers(part.column("to_rod")), percent))
        for size, graph in graphs
        for part in [table.where(operators=size, graph=graph, algorithm=name)]
    ]


def _rows(table: ResultTable) -> list[Row]:
    rows = []
    best = [percentile for name in RIVALS for percentile in _percentiles(table, name, 100)]
    for name in RIVALS:
        low, middle, high = (
            float(np.mean(_percentiles(table, name, percent))) for percent in (10, 50, 90)
        )
        note = "the source: varies significantly"
        rows += [
            within(f"{name}: 90th over 10th percentile", None, high / low, low=1.5, note=note),
            within(f"{name}: median over ROD, mean", None, middle, high=1.0),
        ]
    note = "the source: in most cases"
    below = float(np.mean(np.array(best) < 1))
    rows.append(within("cases whose best run is below ROD", None, below, low=0.5, note=note))
    return rows
