"""Loads of a tree over time: operators that grow for a while, and shrink again later."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.sim.tree_run import NO_CHANGES, Loads


class Shrinking(StrEnum):
    """Which operators shrink, which the source leaves open: those that grew first, or any."""

    IN_ORDER = "in the order of growth"
    AT_RANDOM = "at random"


@dataclass(frozen=True)
class Fluctuation:
    """How loads change, as in the source: every *timespan* another random operator is chosen.

    Until half time it grows, every second, by Poisson(2) times ``unit`` percent of a node; after
    half time those that have grown shrink the same way, not below where they began. ``at_once`` is
    how many change at a time.
    """

    unit: float
    length_s: int = 960
    begin_s: int = 2
    span_s: int = 16
    mean: float = 2.0
    at_once: int = 1
    shrinking: Shrinking = Shrinking.IN_ORDER

    def loads(self, first: Floats, order: Ints, rng: np.random.Generator) -> Loads:
        """The changes of operators that begin with these sizes, drawn from ``order``.

        >>> calm = Fluctuation(unit=1.0, length_s=20)
        >>> loads = calm.loads(np.ones(3), np.arange(3), np.random.default_rng(0))
        >>> loads.times_s[:3].tolist(), bool((loads.sizes >= 1).all())
        ([3.0, 4.0, 5.0], True)
        """
        sizes, rows = first.copy(), []
        grown: list[Ints] = []
        for begin_s in range(self.begin_s, self.length_s, self.span_s):
            is_growing = begin_s < self.length_s / 2
            if is_growing:
                grown.append(_drawn(order, self.at_once, rng))
            for operator in (
                grown[-1] if is_growing else self._chosen(grown, order[(sizes > first)[order]], rng)
            ):
                for step_s in range(begin_s + 1, min(begin_s + self.span_s, self.length_s) + 1):
                    change = rng.poisson(self.mean) * self.unit
                    if not is_growing:
                        change = -min(change, sizes[operator] - first[operator])
                    sizes[operator] = round(sizes[operator] + change, 9)
                    rows.append((float(step_s), int(operator), float(sizes[operator])))
        if not rows:
            return NO_CHANGES
        rows.sort(key=lambda row: row[0])
        times_s, operators, values = zip(*rows, strict=True)
        return Loads(np.array(times_s), np.array(operators, np.int64), np.array(values))

    def _chosen(self, grown: list[Ints], larger: Ints, rng: np.random.Generator) -> Ints:
        """The operators that shrink next; of ``grown`` those that are taken are removed."""
        if self.shrinking is Shrinking.AT_RANDOM:
            return _drawn(larger, self.at_once, rng)
        return grown.pop(0) if grown else np.zeros(0, np.int64)


def _drawn(candidates: Ints, count: int, rng: np.random.Generator) -> Ints:
    return rng.choice(candidates, min(count, len(candidates)), replace=False)
