"""How large a feasible set is, as a part of the ideal one.

A ray from the origin through a point s of the ideal hyperplane (s_1 + … + s_d = 1) leaves the
feasible set at t(s) = min(1, 1 / max_i W_i s), so the volume ratio is the mean of t(s)^d over that
hyperplane. Compared with counting points inside, this integrates one dimension exactly and leaves
a continuous function, which quasi-Monte Carlo points are good at.

The points are Sobol's, mapped to the hyperplane by sorted spacings. Independent scrambles of them
tell the error. All plans that are compared use the same points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial import ConvexHull, HalfspaceIntersection
from scipy.stats import qmc

from penstock.load.arrays import Floats, frozen

MOST_VARIABLES = 24
"""With more variables the ratio of any real plan is too small to be told from zero."""

SCRAMBLES = 8
SURE = 3.5
"""How many standard errors are stated as the error: with 8 scrambles, 99 % certainty."""

_BLOCK = 1 << 15
_SEED = 20_06


@dataclass(frozen=True)
class Volume:
    """A volume ratio and how far the truth may lie from it; zero error for exact values."""

    ratio: float
    error: float = 0.0


@lru_cache(maxsize=32)
def directions(width: int, log2_points: int = 12, seed: int = _SEED) -> Floats:
    """Points of the ideal hyperplane, scrambles x points x ``width``; the same for all callers.

    >>> points = directions(3, 4)
    >>> points.shape, bool(np.allclose(points.sum(axis=2), 1))
    ((8, 16, 3), True)
    """
    points = np.stack(
        [_scrambled(width, log2_points, seed + number) for number in range(SCRAMBLES)]
    )
    frozen(points)
    return points


def _scrambled(width: int, log2_points: int, seed: int) -> Floats:
    count = 1 << log2_points
    if width == 1:
        return np.ones((count, 1))
    rng = np.random.default_rng(seed)
    cuts = np.sort(qmc.Sobol(width - 1, rng=rng).random_base2(log2_points), axis=1)
    spacings: Floats = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    return spacings


def estimated_volume(rows: Floats, points: Floats | None = None) -> Volume:
    """The volume ratio of the half-spaces ``rows`` by quasi-Monte Carlo.

    >>> found = estimated_volume(np.array([[2.0, 0.0], [0.0, 2.0]]))
    >>> abs(found.ratio - 0.5) <= found.error < 0.01
    True
    """
    chosen = directions(rows.shape[1]) if points is None else points
    means = np.array([_mean_ray(rows, scramble) for scramble in chosen])
    return Volume(float(means.mean()), SURE * float(means.std(ddof=1)) / math.sqrt(len(means)))


def _mean_ray(rows: Floats, points: Floats) -> float:
    total = 0.0
    for start in range(0, len(points), _BLOCK):
        load = (rows @ points[start : start + _BLOCK].T).max(axis=0)
        total += float((np.maximum(load, 1.0) ** -rows.shape[1]).sum())
    return total / len(points)


def polygon_volume(rows: Floats) -> float:
    """The exact volume ratio for two variables, by cutting the ideal triangle.

    >>> polygon_volume(np.array([[2.0, 0.0], [0.0, 2.0]]))
    0.5
    """
    return 2.0 * _area(feasible_polygon(rows))


def feasible_polygon(rows: Floats) -> Floats:
    """The corners of a two-dimensional feasible set, counter-clockwise."""
    corners = np.array([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
    for row in rows:
        corners = clipped(corners, row, 1.0)
    return corners


def clipped(corners: Floats, row: Floats, limit: float) -> Floats:
    """The part of a polygon where row x <= limit."""
    if not len(corners):
        return corners
    room = limit - corners @ row
    kept: list[Floats] = []
    for at in range(len(corners)):
        before, here = room[at - 1], room[at]
        if before * here < 0:
            kept.append(
                corners[at - 1] + before / (before - here) * (corners[at] - corners[at - 1])
            )
        if here >= 0:
            kept.append(corners[at])
    return np.array(kept).reshape(-1, 2)


def _area(corners: Floats) -> float:
    x, y = corners[:, 0], corners[:, 1]
    return 0.5 * float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def polytope_volume(rows: Floats) -> float:
    """The exact volume ratio by intersecting the half-spaces; for a few variables only.

    >>> round(polytope_volume(np.eye(3) * 3), 12)
    0.222222222222
    """
    width = rows.shape[1]
    if width == 1:
        return float(1.0 / max(rows.max(), 1.0))
    sides = np.vstack((rows, np.ones(width), -np.eye(width)))
    limits = np.append(np.ones(len(rows) + 1), np.zeros(width))
    inside = np.full(width, 0.5 / max(float(rows.sum(axis=1).max()), width))
    found = HalfspaceIntersection(np.column_stack((sides, -limits)), inside)
    return float(ConvexHull(found.intersections).volume) * math.factorial(width)


def volume(rows: Floats, points: Floats | None = None) -> Volume | None:
    """The volume ratio: exact for one and two variables, estimated for more.

    None for more variables than can be integrated.
    """
    width = rows.shape[1]
    if width == 1:
        return Volume(float(1.0 / max(rows.max(), 1.0)))
    if width == 2:
        return Volume(polygon_volume(rows))
    return estimated_volume(rows, points) if width <= MOST_VARIABLES else None


def ball_bound(distance: float, width: int) -> float:
    """The least volume ratio of a plan whose plane distance r/r* is ``distance``.

    It is that of the part of a ball around the origin that has no negative rates.

    >>> round(ball_bound(1.0, 2), 4)
    0.7854
    """
    ball = math.pi ** (width / 2) / math.gamma(width / 2 + 1)
    radius = distance / math.sqrt(width)
    return float(ball * radius**width / 2**width * math.factorial(width))
