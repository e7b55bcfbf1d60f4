"""The cascade: the requested self-similarity, exact totals, access from anywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.feeds.cascade import Cascade

BIN_US = 10_000
quick = tried(40)
SMALL = Cascade(seed=3, hurst=0.8, rows=2_000, levels=9, block_us=5_000_003)
SMALL_TIMES = [SMALL.times_us(block, 0, SMALL.rows) for block in range(3)]


def estimated_hurst(counts: np.ndarray, scales: int = 9) -> float:
    """By aggregated variance: means of m bins have a variance proportional to m**(2H - 2)."""
    sizes = 2 ** np.arange(scales)
    whole = [counts[: len(counts) // m * m].reshape(-1, m).mean(axis=1) for m in sizes]
    slope = np.polyfit(np.log(sizes), np.log([means.var() for means in whole]), 1)[0]
    return float(1 + slope / 2)


def counts_per_bin(cascade: Cascade, bin_us: int, shift_us: int = 0) -> np.ndarray:
    times_us = cascade.times_us(0, 0, cascade.rows) + shift_us
    # The first and the last may be cut off by the shift.
    return np.bincount(times_us // bin_us)[1:-1].astype(float)


def large(hurst: float, seed: int) -> Cascade:
    bins = 2**15
    return Cascade(seed, hurst, rows=10 * bins, levels=15, block_us=bins * BIN_US)


@pytest.mark.parametrize("hurst", [0.6, 0.7, 0.8, 0.9])
@pytest.mark.parametrize(("bin_us", "shift_us"), [(BIN_US, 0), (7_000, 3_333)])
def test_bursts_have_the_requested_hurst_parameter(
    hurst: float, bin_us: int, shift_us: int
) -> None:
    # Also in bins that have nothing to do with those of the cascade.
    found = [
        estimated_hurst(counts_per_bin(large(hurst, seed), bin_us, shift_us)) for seed in range(4)
    ]
    assert np.mean(found) == pytest.approx(hurst, abs=0.04)


def test_poisson_arrivals_are_told_apart() -> None:
    steady = np.random.default_rng(1).poisson(10, 2**15).astype(float)
    bursty = counts_per_bin(large(0.8, 1), BIN_US)
    assert estimated_hurst(steady) == pytest.approx(0.5, abs=0.04)
    assert estimated_hurst(bursty) > 0.7
    assert bursty.reshape(-1, 2).sum(axis=1)[:10_000].std() > 3 * steady.std()


def test_a_bin_varies_by_as_much_as_its_mean() -> None:
    counts = counts_per_bin(large(0.8, 2), BIN_US)
    assert counts.std() / counts.mean() == pytest.approx(1, abs=0.15)
    assert counts.max() > 5 * counts.mean()


def test_times_never_decrease_and_stay_within_the_block() -> None:
    for times_us in SMALL_TIMES:
        assert (np.diff(times_us) >= 0).all()
        assert times_us[0] >= 0 and times_us[-1] < SMALL.block_us


def test_blocks_differ() -> None:
    assert not np.array_equal(SMALL_TIMES[0], SMALL_TIMES[1])


@quick
@given(st.integers(0, 2), st.integers(0, 2_000), st.integers(0, 2_000))
def test_any_part_of_a_block(block: int, one: int, other: int) -> None:
    first, stop = sorted((one, other))
    expected = SMALL_TIMES[block][first:stop]
    assert SMALL.times_us(block, first, stop).tolist() == expected.tolist()


@quick
@given(st.integers(0, 2), st.integers(0, 5_100_000))
def test_count_before_counts(block: int, offset_us: int) -> None:
    expected = int((SMALL_TIMES[block] < offset_us).sum())
    assert SMALL.count_before(block, offset_us) == expected


@quick
@given(st.integers(0, 1_999))
def test_count_before_at_the_times_themselves(row: int) -> None:
    time_us = int(SMALL_TIMES[0][row])
    assert SMALL.count_before(0, time_us) == int((SMALL_TIMES[0] < time_us).sum())


@pytest.mark.parametrize("levels", [0, 1, 2])
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_tiny_blocks(levels: int, rows: int) -> None:
    cascade = Cascade(1, 0.8, rows, levels, block_us=1_000)
    times_us = cascade.times_us(0, 0, rows)
    assert len(times_us) == rows
    assert cascade.count_before(0, 999) == int((times_us < 999).sum())


def test_more_bins_than_rows_cost_no_more_than_the_rows() -> None:
    sparse = Cascade(1, 0.8, rows=10, levels=30, block_us=2**31)
    assert len(sparse.times_us(0, 0, 10)) == 10
