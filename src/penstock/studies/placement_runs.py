"""What the placement studies share: rivals with random knowledge, volumes, means by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.feasible import seen_rows
from penstock.load.problem import Problem
from penstock.load.volume import directions, volume
from penstock.place.connected import Connected
from penstock.place.correlated import GlobalCorrelation
from penstock.place.llf import LargestLoadFirst
from penstock.place.local_search import LocalSearch
from penstock.place.random_plan import Random
from penstock.studies.report import ResultTable, Value

LOG2_POINTS = 9


def ratio(problem: Problem, plan: Ints, log2_points: int = LOG2_POINTS) -> float:
    """The volume of a plan as a part of the ideal."""
    rows = seen_rows(problem, plan)
    if rows is None:
        return 0.0
    found = volume(rows, directions(rows.shape[1], log2_points))
    assert found is not None
    return found.ratio


def _with_random_rates(problem: Problem, rng: np.random.Generator) -> Problem:
    """What a balancer might have measured: every stream makes a random part of the load."""
    return replace(problem, rates=rng.random(problem.size[2]) / problem.totals)


def _llf(problem: Problem, rng: np.random.Generator) -> Ints:
    return LargestLoadFirst().place(_with_random_rates(problem, rng), rng)


def _connected(problem: Problem, rng: np.random.Generator) -> Ints:
    return Connected().place(_with_random_rates(problem, rng), rng)


def _correlation(problem: Problem, rng: np.random.Generator) -> Ints:
    """With a random rate series of its own: all streams make the same load on average."""
    return GlobalCorrelation().place(replace(problem, rates=1.0 / problem.totals), rng)


RIVALS: Mapping[str, Callable[[Problem, np.random.Generator], Ints]] = {
    "correlation": _correlation,
    "largest-load": _llf,
    "random": Random().place,
    "connected": _connected,
}
"""The source's rivals; each run of one knows other random rates or draws other lots."""


def search(problem: Problem) -> Ints:
    """The plan of the local search, with a little effort."""
    return LocalSearch(5e6).place(problem, np.random.default_rng(0))


def mean_by(table: ResultTable, column: str, /, **wanted: Value) -> float:
    """The mean of a column over the rows with these values."""
    return float(np.mean([_number(value) for value in table.where(**wanted).column(column)]))


def median_by(table: ResultTable, column: str, /, **wanted: Value) -> float:
    """The median of a column over the rows with these values."""
    return float(np.median([_number(value) for value in table.where(**wanted).column(column)]))


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def numbers(values: Iterable[Value]) -> list[float]:
    """A column as numbers."""
    return [_number(value) for value in values]
