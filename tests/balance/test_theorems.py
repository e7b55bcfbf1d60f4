"""Theorems 4 and 5 of the source, and what the lower bound says about plans."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from laws import tried
from penstock.load.correlation import (
    deviations,
    least_mean_deviation,
    mean_pair_correlation,
    normalise,
    spread,
)

loads = st.integers(0, 1_000).map(float)


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 12)), elements=loads))
@tried(40)
def test_theorem_4_no_partition_varies_less_than_equal_shares(nodes: np.ndarray) -> None:
    total = nodes.sum(axis=0)
    mean_variance = (deviations(nodes) ** 2).mean()
    least = total.var() / len(nodes) ** 2
    assert mean_variance >= least * (1 - 1e-9) - 1e-9
    # The bound printed in studies is on deviations, and follows from the triangle inequality.
    assert deviations(nodes).mean() >= least_mean_deviation(nodes) - 1e-9


@given(arrays(np.float64, st.integers(2, 12), elements=loads), st.integers(2, 6))
@tried(40)
def test_theorem_4_equal_shares_reach_the_bound_and_correlate_fully(
    total: np.ndarray, nodes: int
) -> None:
    shares = np.tile(total / nodes, (nodes, 1))
    assert np.isclose(deviations(shares).mean(), least_mean_deviation(shares))
    if total.std() > 0:
        assert np.isclose(mean_pair_correlation(shares), 1.0)


@given(st.integers(2, 12).flatmap(lambda h: arrays(np.float64, (2, h), elements=loads)))
@tried(60)
def test_theorem_5_correlation_bounds_the_variance_of_two_nodes(pair: np.ndarray) -> None:
    left, right = pair
    variances = left.var() + right.var()
    total = (left + right).var()
    rho = normalise(spread(pair, 0, pair, 1), spread(pair, 0, pair, 0), spread(pair, 1, pair, 1))
    slack = 1e-6 * (1 + variances)
    if rho > 0:
        assert total / (1 + rho) - slack <= variances <= total + slack
    elif -1 + 1e-6 < rho < 0:
        assert total - slack <= variances <= total / (1 + rho) * (1 + 1e-4) + slack
