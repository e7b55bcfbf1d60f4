"""Small cases against the best plan there is."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.feasible import weights
from penstock.load.problem import Problem
from penstock.load.volume import polytope_volume
from penstock.place.exhaustive import exhaustive
from penstock.place.rod import rod
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import RIVALS, mean_by, numbers, search
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

NODES, CASES = 3, 200
_PER_POINT = 10


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """200 random cases of 3 nodes, 4 to 10 operators, 2 or 3 inputs: volume over the optimum's."""
    cases = 60 if quick else CASES
    table = gathered("small-optimum", run(measure, range(cases // _PER_POINT), say))
    figure = Figure(
        "small-optimum", "small-optimum", "operators", "to_optimum", by="algorithm",
        title="Small cases: volume compared with the best plan's", x_label="number of operators",
        y_label="volume / optimal volume", spread=True,
    )  # fmt: skip
    setup = f"{cases} random cases, {NODES} equal nodes, 4 to 10 operators, 2 or 3 inputs."
    return StudyReport("small-optimum", tuple(_rows(table)), (table,), (figure,), setup)


def measure(part: int) -> list[dict[str, Value]]:
    """Some of the cases: the exact volume of every algorithm's plan over the optimum's."""
    found: list[dict[str, Value]] = []
    for case in range(part * _PER_POINT, (part + 1) * _PER_POINT):
        rng = rng_of("small-optimum", case)
        operators, inputs = int(rng.integers(4, 11)), int(rng.integers(2, 4))
        problem = tree_problem(Trees(operators, inputs, NODES), rng)
        plans = {"local-search": search(problem), "rod": rod(problem)}
        plans |= {name: place(problem, rng) for name, place in RIVALS.items()}
        best = max(_exact(problem, found) for found in (exhaustive(problem), *plans.values()))
        for name, plan in plans.items():
            to_optimum = _exact(problem, plan) / best
            found.append(
                {"operators": operators, "case": case, "algorithm": name, "to_optimum": to_optimum}
            )
    return found


def _exact(problem: Problem, plan: Ints) -> float:
    return polytope_volume(weights(problem, plan))


def _rows(table: ResultTable) -> list[Row]:
    def least(name: str) -> float:
        return float(np.min(numbers(table.where(algorithm=name).column("to_optimum"))))

    found = {name: mean_by(table, "to_optimum", algorithm=name) for name in ("local-search", "rod")}
    rivals = max(mean_by(table, "to_optimum", algorithm=name) for name in RIVALS)
    return [
        within("local search over the optimum, mean", None, found["local-search"], low=0.99),
        within("local search over the optimum, worst case", None, least("local-search")),
        within("ROD over the optimum, mean", None, found["rod"], low=rivals),
        within("ROD over the optimum, worst case", None, least("rod")),
        within("best rival over the optimum, mean", None, rivals, high=found["rod"]),
    ]
