"""Means, variances and correlations of load series, exact where it decides something.

All sums are kept as ``h * h * covariance = h * sum(x * y) - sum(x) * sum(y)``, which is a whole
number when the series are (see :class:`~penstock.load.series.LoadSeries`), and correlations are
rounded to a fixed grid, so that sums of them do not depend on their order either. Adding or
removing a series changes a covariance by the covariance of that series: nothing else has to be
computed again, and nothing drifts. Variance is the population's (divided by h); the correlation
with a constant series is 0.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.load.arrays import Floats
from penstock.load.compiled import compiled
from penstock.load.series import LoadSeries

_GRID = float(1 << 40)


@compiled
def spread(left: Floats, i: int, right: Floats, j: int) -> float:
    """``h * h`` times the covariance of row i of one table and row j of another."""
    samples = left.shape[1]
    products = 0.0
    sum_left = 0.0
    sum_right = 0.0
    for k in range(samples):
        products += left[i, k] * right[j, k]
        sum_left += left[i, k]
        sum_right += right[j, k]
    return float(samples * products - sum_left * sum_right)


@compiled
def normalise(cov: float, var_left: float, var_right: float) -> float:
    """The correlation, on a grid of 2**-40, from a covariance and two variances.

    All three may carry the same factor. Variances of whole numbers are at least 1 unless they
    are 0.
    """
    if var_left < 0.5 or var_right < 0.5:
        return 0.0
    exact = cov / math.sqrt(var_left * var_right)
    return math.floor(min(1.0, max(-1.0, exact)) * _GRID + 0.5) / _GRID


@compiled
def correlation_matrix(rows: Floats) -> Floats:
    """The correlations of all pairs of rows; 1 on the diagonal, 0 for constant rows."""
    count = rows.shape[0]
    found = np.zeros((count, count))
    var = np.empty(count)
    for i in range(count):
        var[i] = spread(rows, i, rows, i)
        found[i, i] = normalise(var[i], var[i], var[i])
        for j in range(i):
            relation = normalise(spread(rows, i, rows, j), var[i], var[j])
            found[i, j] = relation
            found[j, i] = relation
    return found


def correlations(series: LoadSeries) -> Floats:
    """The correlations of all pairs of operators.

    >>> from penstock.load.series import load_series
    >>> correlations(load_series([[0.1, 0.2], [0.4, 0.8], [0.9, 0.1], [0.3, 0.3]]))
    array([[ 1.,  1., -1.,  0.],
           [ 1.,  1., -1.,  0.],
           [-1., -1.,  1.,  0.],
           [ 0.,  0.,  0.,  0.]])
    """
    return correlation_matrix(series.quanta)


def deviations(series: Floats) -> Floats:
    """The standard deviation of every row, of the population.

    >>> deviations(np.array([[1.0, 3.0], [2.0, 2.0]]))
    array([1., 0.])
    """
    found: Floats = series.std(axis=1)
    return found


def mean_pair_correlation(node_series: Floats) -> float:
    """The mean correlation of all pairs of nodes; 0 for a single node."""
    nodes = node_series.shape[0]
    if nodes < 2:
        return 0.0
    scale = float(np.abs(node_series).max(initial=0.0)) or 1.0
    found = correlation_matrix(np.rint(node_series / scale * (1 << 21)))
    return float((found.sum() - np.trace(found)) / (nodes * (nodes - 1)))


def least_mean_deviation(node_series: Floats) -> float:
    """What no plan for these loads can go below on average: sd(X) / n (theorem 4).

    >>> least_mean_deviation(np.array([[0.0, 2.0], [2.0, 2.0]]))
    0.5
    """
    return float(node_series.sum(axis=0).std() / node_series.shape[0])
