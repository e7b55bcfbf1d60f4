"""What it costs not to know the lower bound of the rates (figures 6.6, 6.7, table 6.1).

The penalty is (V(B) - V(other)) / V(B): B is the true lower bound, V(x) the size, above B, of the
feasible set of the plan that ROD makes when it takes x for the lower bound.

Bounds are drawn uniformly from the ideal feasible set. Most of its volume lies near the ideal
hyperplane, so most feasible sets above B are tiny, and how they are measured matters. The source
integrates over the whole ideal set by quasi-Monte Carlo: where no point falls into V(B) there is no
penalty to compute, so the tiniest sets, with the largest penalties, drop out. Counting that way
gives the source's figures; measuring every set exactly gives larger ones. Both are reported.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.stats import qmc

from penstock.load.arrays import Floats, Ints
from penstock.load.feasible import weights
from penstock.load.problem import Problem
from penstock.place.rod import rod
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import mean_by, ratio
from penstock.studies.random_trees import Trees, tree_problem
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    gathered,
    near,
    records,
    within,
)
from penstock.studies.running import one_by_one
from penstock.studies.seeds import rng_of

SIZES = (25, 50, 100, 200)
ORIGIN = (0.90, 0.79, 0.56, 0.35)
WRONG = (0.89, 0.83, 0.55, 0.32)
_APART = 0.1
_INPUTS = 5
_LOG2_COUNTED = 15
_BOUNDS = 25


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """The mean penalty of taking the origin, or a wrong point, for the lower bound."""
    graphs = 30 if quick else 80
    points = [(size, graph) for size in SIZES for graph in range(graphs)]
    table = gathered("lower-bounds", run(measured, points, say))
    figures = (
        Figure(
            "penalty-origin", "penalty-by-depth", "depth", "penalty", kind="scatter",
            title="Penalty for not knowing the lower bound, 50 operators", y_label="penalty",
            x_label="distance of the lower bound from the ideal hyperplane (origin: 1)",
        ),
        Figure(
            "penalty-mean", "penalty-means", "operators", "penalty", by="what",
            title="Mean penalty", x_label="number of operators", y_label="penalty",
        ),
    )  # fmt: skip
    setup = (
        f"{graphs} random graphs per size, {_BOUNDS} lower bounds each, uniform in the ideal set; "
        f"10 equal nodes, 5 inputs. Counted: sizes by counting {1 << _LOG2_COUNTED} points of the "
        "ideal set, as the source does; exact: every set by itself."
    )
    tables = (table, *_shown(table))
    return StudyReport("lower-bounds", tuple(_rows(table)), tables, figures, setup)


def measured(point: tuple[int, int]) -> list[dict[str, Value]]:
    """The penalties of one graph, for each lower bound, each mistake and both measures."""
    size, graph = point
    rng = rng_of("lower-bounds", size, graph)
    problem = tree_problem(Trees(size, _INPUTS), rng)
    found: list[dict[str, Value]] = []
    for _ in range(_BOUNDS):
        low = _uniform(rng)
        wrong = {"origin": np.zeros(_INPUTS), "wrong point": _uniform(rng)}
        wrong["wrong point of even depth"] = _even_depth(rng)
        found += _penalties(problem, size, low, wrong)
    return found


def _penalties(
    problem: Problem, size: int, low: Floats, wrong: dict[str, Floats]
) -> list[dict[str, Value]]:
    known = _above(problem, low)
    plan = rod(known)
    inside = _points()[(_points() >= low).all(axis=1)]
    counted, exact = _count(problem, plan, inside), ratio(known, plan, 8)
    found: list[dict[str, Value]] = []
    for what, assumed in wrong.items():
        other = rod(_above(problem, assumed))
        common: dict[str, Value] = {
            "operators": size,
            "what": what,
            "depth": float(1 - low.sum()),
            "distance": float(np.linalg.norm(low - assumed)),
        }
        if counted:
            penalty = 1 - _count(problem, other, inside) / counted
            found.append({**common, "measure": "counted", "penalty": penalty})
        if exact:
            penalty = 1 - ratio(known, other, 8) / exact
            found.append({**common, "measure": "exact", "penalty": penalty})
    return found


def _above(problem: Problem, low: Floats) -> Problem:
    return replace(problem, lower=low * problem.capacity / problem.totals)


def _uniform(rng: np.random.Generator) -> Floats:
    """A point of the ideal feasible set, all of its volume alike."""
    point: Floats = np.diff(np.sort(rng.random(_INPUTS)), prepend=0.0)
    return point


def _even_depth(rng: np.random.Generator) -> Floats:
    """A point whose distance from the ideal hyperplane is uniform between 0 and the origin's."""
    spacings = np.diff(np.sort(rng.random(_INPUTS - 1)), prepend=0.0, append=1.0)
    point: Floats = spacings * rng.random()
    return point


@lru_cache
def _points() -> Floats:
    drawn = qmc.Sobol(_INPUTS, rng=np.random.default_rng(1)).random_base2(_LOG2_COUNTED)
    points: Floats = np.diff(np.sort(drawn, axis=1), axis=1, prepend=0.0)
    return points


def _count(problem: Problem, plan: Ints, inside: Floats) -> int:
    return int((inside @ weights(problem, plan).T <= 1).all(axis=1).sum())


def _shown(table: ResultTable) -> tuple[ResultTable, ResultTable]:
    """What the figures show: penalties of one size by depth, and means by size."""
    origin = table.where(what="origin", measure="exact", operators=50)
    means: list[dict[str, Value]] = [
        {
            "operators": size,
            "what": f"{what}, {measure}",
            "penalty": mean_by(table, "penalty", operators=size, what=what, measure=measure),
        }
        for what in ("origin", "wrong point")
        for measure in ("counted", "exact")
        for size in SIZES
    ]
    published: list[dict[str, Value]] = [
        {"operators": size, "what": f"{what}, published", "penalty": value}
        for what, values in (("origin", ORIGIN), ("wrong point", WRONG))
        for size, value in zip(SIZES, values, strict=True)
    ]
    return replace(origin, name="penalty-by-depth"), records("penalty-means", means + published)


def _rows(table: ResultTable) -> list[Row]:
    rows = []
    for what, published in (("origin", ORIGIN), ("wrong point", WRONG)):
        for size, source in zip(SIZES, published, strict=True):
            counted = mean_by(table, "penalty", operators=size, what=what, measure="counted")
            exact = mean_by(table, "penalty", operators=size, what=what, measure="exact")
            note = f"exact: {exact:.2f}"
            if what != "origin":
                even = mean_by(
                    table,
                    "penalty",
                    operators=size,
                    what="wrong point of even depth",
                    measure="counted",
                )
                note += f"; wrong points of even depth: {even:.2f}"
            rows.append(near(f"{what} assumed, {size} operators", source, counted, _APART, note))
    return [*rows, *_falls(table)]


def _falls(table: ResultTable) -> list[Row]:
    rows = []
    for what in ("origin", "wrong point"):
        for measure in ("counted", "exact"):
            means = [
                mean_by(table, "penalty", operators=size, what=what, measure=measure)
                for size in SIZES
            ]
            quantity = f"{what}, {measure}: the penalty falls; 200 operators over 25"
            rows.append(within(quantity, None, means[-1] / means[0], high=0.8))
    return rows
