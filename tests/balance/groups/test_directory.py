"""Directories of mini-partitions: what always holds, however sizes grow and shrink."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.balance.groups.directory import Bucket, SizeLimits, SplitDirectory, Tuned, tune
from penstock.errors import InputError

LIMITS = SizeLimits(10)
sizes = st.one_of(st.integers(0, 6), st.integers(0, 60))
histograms = st.lists(sizes, min_size=16, max_size=16).map(np.array)


def _size(bucket: Bucket, cells: np.ndarray) -> int:
    bits = len(cells).bit_length() - 1
    return int(sum(cells[at] for at in bucket.entries(bits)))


def _check(tuned: Tuned, cells: np.ndarray) -> None:
    buckets = tuned.directory.buckets
    assert sum(_size(one, cells) for one in buckets) == cells.sum()
    for bucket in buckets:
        size = _size(bucket, cells)
        cell = max(cells[at] for at in bucket.entries(4))
        if size > LIMITS.most:
            assert bucket in tuned.hot
            assert cell > LIMITS.most, "a bucket that can be split is not left too large"
            assert size - cell <= LIMITS.most, "what a hot key drags along is bounded"
        if size < LIMITS.theta and bucket.depth and bucket.buddy in buckets:
            assert size + _size(bucket.buddy, cells) >= LIMITS.most


@given(st.lists(histograms, min_size=1, max_size=6))
@tried(200)
def test_sizes_stay_within_the_limits_as_they_grow_and_shrink(steps: list[np.ndarray]) -> None:
    directory = SplitDirectory()
    for cells in steps:
        tuned = tune(directory, cells, LIMITS)
        _check(tuned, cells)
        again = tune(tuned.directory, cells, LIMITS)
        assert (again.directory, again.splits, again.merges) == (tuned.directory, 0, 0)
        directory = tuned.directory


@given(histograms)
@tried(100)
def test_the_table_and_the_buddy_of_the_source(cells: np.ndarray) -> None:
    """Entries of a bucket lie side by side, and its buddy is where the printed formula says."""
    directory = tune(SplitDirectory(), cells, LIMITS).directory
    depth = directory.depth
    assert len(directory.table) == 1 << depth
    for bucket in directory.buckets:
        if bucket.depth:
            first, width = bucket.entries(depth).start, 1 << (depth - bucket.depth)
            printed = first + width if first % (2 * width) == 0 else first - width
            assert bucket.buddy.entries(depth).start == printed
        assert all(directory.table[at] == bucket for at in bucket.entries(depth))


def test_it_shrinks_back_to_one_bucket() -> None:
    grown = tune(SplitDirectory(), np.full(16, 12), LIMITS)
    assert grown.splits == 15 and grown.directory.depth == 4
    shrunk = tune(grown.directory, np.full(16, 1), LIMITS)
    assert shrunk.merges == 15 and shrunk.directory == SplitDirectory()


def test_a_hot_key_is_recognised_and_not_split_for_ever() -> None:
    cells = np.zeros(1 << 10, np.int64)
    cells[700] = 1_000
    tuned = tune(SplitDirectory(), cells, LIMITS)
    assert tuned.directory == SplitDirectory() and tuned.hot == (Bucket(),)
    cells[:512] = 1
    tuned = tune(SplitDirectory(), cells, LIMITS)
    assert tuned.hot == (Bucket(1, 1),), "the others are split off, the hot one stays whole"


@pytest.mark.parametrize(
    "buckets",
    [(), (Bucket(0, 1),), (Bucket(), Bucket()), (Bucket(1, 1), Bucket(0, 1)), (Bucket(1, 1),)],
)
def test_what_is_no_directory(buckets: tuple[Bucket, ...]) -> None:
    with pytest.raises(InputError, match="buckets of a directory"):
        SplitDirectory(buckets)


def test_what_cannot_be_tuned() -> None:
    with pytest.raises(InputError, match="3 cells are no power of two"):
        tune(SplitDirectory(), np.arange(3), LIMITS)
    with pytest.raises(InputError, match="depth 4 is tuned by sizes of 1 bits"):
        tune(tune(SplitDirectory(), np.full(16, 12), LIMITS).directory, np.arange(2), LIMITS)
    with pytest.raises(InputError, match="theta of 0"):
        SizeLimits(0)
    with pytest.raises(InputError, match="prefix 2 of 1 bits"):
        Bucket(2, 1)
