"""Load series: gaps, faults, and operators that come and go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from laws import tried
from penstock.errors import InputError
from penstock.load.correlation import correlations
from penstock.load.series import SeriesWindow, load_series

nan, inf = float("nan"), float("inf")


def test_a_gap_leaves_the_mean_as_it_is_and_adds_no_correlation() -> None:
    series = load_series([[0.2, nan, 0.6], [0.1, 0.9, 0.5]])
    assert series.means == pytest.approx([0.4, 0.5], abs=1e-5)
    assert series.loads[0] == pytest.approx([0.2, 0.4, 0.6], abs=1e-5)


@pytest.mark.parametrize("fault", [nan, inf, -inf, -0.1])
def test_what_cannot_be_a_load_counts_as_missing(fault: float) -> None:
    series = load_series([[0.3, fault], [fault, fault]])
    assert series.means == pytest.approx([0.3, 0.0], abs=1e-5)
    assert series.known.tolist() == [0.5, 0.0]


@given(arrays(np.float64, (5, 4), elements=st.floats(0, 1e6, allow_subnormal=False)))
@tried(30)
def test_the_quantum_is_finer_than_a_millionth_and_sums_are_exact(loads: np.ndarray) -> None:
    series = load_series(loads)
    assert np.abs(series.loads - loads).max() <= 4e-6 * loads.max()
    forwards = sum(row for row in series.quanta)
    backwards = sum(row for row in series.quanta[::-1])
    assert np.array_equal(forwards, backwards)


def test_the_smallest_of_all_numbers_are_no_load() -> None:
    assert load_series([[5e-324, 0.0]]).loads.tolist() == [[0.0, 0.0]]


def test_constant_series_correlate_with_nothing() -> None:
    found = correlations(load_series([[0.3, 0.3], [0.1, 0.2], [0.0, 0.0]]))
    assert found[0].tolist() == found[2].tolist() == [0, 0, 0]


@given(arrays(np.float64, (4, 6), elements=st.integers(0, 50).map(float)))
@tried(60)
def test_correlations_are_those_of_numpy(loads: np.ndarray) -> None:
    varies = np.ptp(loads, axis=1) > 0
    found = correlations(load_series(loads))[np.ix_(varies, varies)]
    if varies.sum() > 1:
        assert found == pytest.approx(np.corrcoef(loads[varies]), abs=1e-3)


def test_a_window_keeps_the_last_periods_of_whoever_reported() -> None:
    window = SeriesWindow(samples=3)
    assert window.samples_of(["a"]).shape == (1, 0)
    for loads in ({"a": 1.0}, {"a": 2.0, "gone": 1.0}, {"a": 3.0}, {"a": 4.0, "new": 9.0}):
        assert not window.is_full or len(window) == 3
        window.add(loads)
    assert window.is_full
    found = window.samples_of(["new", "a"])
    assert np.array_equal(found, [[nan, nan, 9.0], [2.0, 3.0, 4.0]], equal_nan=True)


def test_a_window_needs_a_sample() -> None:
    with pytest.raises(InputError) as error:
        SeriesWindow(samples=0)
    assert str(error.value) == "a statistics window of 0 samples. Give at least one."
