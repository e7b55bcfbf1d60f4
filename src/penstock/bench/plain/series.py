"""Statistics of load series as lists of numbers, written as they are defined."""

from __future__ import annotations

import math
from collections.abc import Sequence

Series = Sequence[float]

_GRID = 1 << 40


def plus(left: Series, right: Series) -> list[float]:
    return [a + b for a, b in zip(left, right, strict=True)]


def minus(left: Series, right: Series) -> list[float]:
    return [a - b for a, b in zip(left, right, strict=True)]


def mean(series: Series) -> float:
    return sum(series) / len(series)


def covariance(left: Series, right: Series) -> float:
    """Times h squared, which leaves whole numbers whole."""
    products = sum(a * b for a, b in zip(left, right, strict=True))
    return len(left) * products - sum(left) * sum(right)


def correlation(left: Series, right: Series) -> float:
    """On a grid of 2**-40, so that what is equal by the definition is equal."""
    spread = covariance(left, left) * covariance(right, right)
    if spread == 0:
        return 0.0
    exact = covariance(left, right) / math.sqrt(spread)
    return math.floor(min(1.0, max(-1.0, exact)) * _GRID + 0.5) / _GRID
