"""Local search: ROD's plan, improved as long as the volume itself grows.

Each step takes the best move of one unit to another node, or its best swap with a unit elsewhere.
When no unit can be improved, a few units are put elsewhere and the search goes on from there; what
it finds is kept if it is larger. Volumes along the way are measured along a few sample directions;
the last word, whether the result is larger than ROD's, has the measure that plans are compared by.

The result depends on the problem and on the number of steps alone. A clock can end the search
before, for callers who cannot wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.feasible import plane_distance, seen_rows
from penstock.load.problem import UNPINNED, Problem
from penstock.load.volume import MOST_VARIABLES, directions, volume
from penstock.place.clustering import clustered_rod
from penstock.place.rod import rod
from penstock.place.strategy import Strategy

Clock = Callable[[], float]

_SEED = 1
_KICKED = 3
_FRUITLESS = 40
"""After so many kicks in a row that led to nothing better the search ends."""


def _timeless() -> float:
    return 0.0


@dataclass(frozen=True)
class LocalSearch(Strategy):
    """Moves and swaps from ROD's plan that raise the volume; never worse than ROD.

    ``effort`` bounds the work: changes looked at times sample directions. ``limit_s`` of ``clock``
    ends it earlier; with a real clock the result then depends on the machine.
    """

    name: ClassVar[str] = "local-search"
    effort: float = 2e7
    limit_s: float = np.inf
    clock: Clock = _timeless

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        started = self.clock()

        def is_over() -> bool:
            return self.clock() - started >= self.limit_s

        return local_search(problem, self.effort, is_over)


def local_search(problem: Problem, effort: float, is_over: Callable[[], bool]) -> Ints:
    """The best plan found; ROD's where there are too many variables to measure volumes."""
    start = clustered_rod(problem)
    _, nodes, width = problem.size
    free = np.flatnonzero(problem.pinned == UNPINNED)
    if width > MOST_VARIABLES or nodes < 2 or not len(free):
        return start
    found = _Climb(problem, start, effort, is_over).run(free)
    return max((rod(problem), start, found), key=lambda plan: _quality(problem, plan))


def _quality(problem: Problem, plan: Ints) -> tuple[float, float]:
    rows = seen_rows(problem, plan)
    if rows is None:
        return 0.0, 0.0
    found = volume(rows)
    assert found is not None
    return found.ratio, plane_distance(rows)


class _Climb:
    def __init__(
        self, problem: Problem, start: Ints, effort: float, is_over: Callable[[], bool]
    ) -> None:
        from penstock.place.search_state import State, search_of

        samples = _samples(problem)
        self._state = State(search_of(problem, samples), start)
        self._evaluations = max(1, int(effort / len(samples)))
        self._is_over = is_over
        self._rng = np.random.default_rng(_SEED)
        self._nodes = len(problem.nodes)

    def run(self, free: Ints) -> Ints:
        self._to_the_top(free)
        best, best_volume = self._state.plan, self._state.volume
        fruitless = 0
        while self._goes_on and fruitless < _FRUITLESS:
            self._state.restart(self._kicked(best, free))
            self._to_the_top(free)
            fruitless += 1
            if self._state.volume > best_volume:
                best, best_volume, fruitless = self._state.plan, self._state.volume, 0
        return best

    @property
    def _goes_on(self) -> bool:
        return self._evaluations > 0 and not self._is_over()

    def _to_the_top(self, free: Ints) -> None:
        """Improves unit after unit until none can be improved."""
        unchanged = 0
        while unchanged < len(free) and self._goes_on:
            for unit in free:
                before = self._state.total
                self._evaluations -= self._state.improve(int(unit), self._evaluations)
                unchanged = 0 if self._state.total > before else unchanged + 1
                if unchanged >= len(free) or not self._goes_on:
                    return

    def _kicked(self, plan: Ints, free: Ints) -> Ints:
        """The plan with a few units on nodes chosen by lot."""
        kicked = plan.copy()
        units = self._rng.choice(free, min(_KICKED, len(free)), replace=False)
        kicked[units] = self._rng.integers(0, self._nodes, len(units))
        return kicked


def _samples(problem: Problem) -> Floats:
    """Directions to measure by: fewer, the more there is to search."""
    units, nodes, width = problem.size
    log2_points = 6 if units * nodes > 20_000 else 7 if units * nodes > 2_000 else 8
    points = directions(width, log2_points)
    chosen: Floats = points[:2].reshape(-1, width)
    return chosen
