"""Feasible-set size against the number of inputs (figure 6.5 of the source)."""

from __future__ import annotations

import numpy as np

from penstock.place.rod import rod
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import RIVALS, mean_by, ratio
from penstock.studies.random_trees import Trees, tree_problem
from penstock.studies.report import ResultTable, Row, Runner, Say, StudyReport, gathered, within
from penstock.studies.running import one_by_one
from penstock.studies.seeds import rng_of

INPUTS = (2, 3, 4, 5, 6, 7)
OPERATORS_PER_INPUT = 20
_RUNS = 10


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """The rivals' volume as a part of ROD's, for two to seven inputs."""
    graphs = 20 if quick else 60
    points = [(inputs, graph) for inputs in INPUTS for graph in range(graphs)]
    table = gathered("resilience-inputs", run(measure, points, say))
    figure = Figure(
        "resilience-inputs", "resilience-inputs", "inputs", "to_rod", by="algorithm", log_y=True,
        title="Rivals compared with ROD, 20 operators per input", x_label="number of inputs",
        y_label="volume / ROD's volume",
    )  # fmt: skip
    setup = (
        f"{graphs} random graphs per number of inputs, {OPERATORS_PER_INPUT} operators per input, "
        f"10 equal nodes; rivals run {_RUNS} times with random rates."
    )
    return StudyReport("resilience-inputs", tuple(_rows(table)), (table,), (figure,), setup)


def measure(point: tuple[int, int]) -> list[dict[str, float | int | str | None]]:
    """The rivals' volumes over ROD's on one graph."""
    inputs, graph = point
    rng = rng_of("resilience-inputs", inputs, graph)
    problem = tree_problem(Trees(OPERATORS_PER_INPUT * inputs, inputs), rng)
    ours = ratio(problem, rod(problem))
    return [
        {
            "inputs": inputs,
            "graph": graph,
            "algorithm": name,
            "to_rod": float(
                np.mean([ratio(problem, place(problem, rng)) for _ in range(_RUNS)]) / ours
            ),
        }
        for name, place in RIVALS.items()
    ]


def _rows(table: ResultTable) -> list[Row]:
    rows = []
    for name in RIVALS:
        means = [mean_by(table, "to_rod", inputs=inputs, algorithm=name) for inputs in INPUTS]
        steps = np.array(means[1:]) / np.array(means[:-1])
        tail = np.log(means[1:])
        fit = np.polyfit(INPUTS[1:], tail, 1)
        straight = float(np.corrcoef(INPUTS[1:], tail)[0, 1] ** 2)
        rows += [
            within(f"{name} over ROD, 2 inputs", None, means[0], high=1.0),
            within(f"{name} over ROD, 5 inputs", None, means[3], high=means[0]),
            within(
                f"{name}: largest change per added input", None, float(steps.max()), high=1.0,
                note="ROD's margin grows with every input",
            ),
            within(
                f"{name}: factor per added input, from 3 on", None, float(np.exp(fit[0])), high=0.95
            ),
            within(
                f"{name}: straightness of that line (R²)", None, straight, low=0.9,
                note="the source: a constant factor per added input",
            ),
        ]  # fmt: skip
    return rows
