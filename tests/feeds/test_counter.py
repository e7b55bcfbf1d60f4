"""Random numbers by index: the published function, independent of cuts, evenly spread."""

from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.feeds.counter import Draws, fraction

WORD = 2**64 - 1


def splitmix64_finaliser(state: int) -> int:
    """The plain form of what Draws computes for whole arrays."""
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & WORD
    return state ^ (state >> 31)


@settings(database=None, deadline=None)
@given(seed=st.integers(), index=st.integers(0, 2**62))
def test_bits_are_splitmix64_at_the_index(seed: int, index: int) -> None:
    key = int.from_bytes(blake2b(f"{seed}/any".encode(), digest_size=8).digest(), "big")
    expected = splitmix64_finaliser((key + index * 0x9E3779B97F4A7C15) & WORD)
    assert int(Draws(seed, "any").bits(np.array([index]))[0]) == expected


def test_numbers_never_change() -> None:
    # Stored positions refer to rows; other numbers would silently mean other rows.
    assert Draws(0, "delay").bits(np.arange(3)).tolist() == [
        9210095686518207514,
        1581281076762452943,
        5254077572811237459,
    ]


def test_index_is_not_changed() -> None:
    index = np.arange(5)
    Draws(1, "a").below(10, index)
    assert index.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("seed", "stream"), [(1, "b"), (2, "a")])
def test_other_seeds_and_streams_are_unrelated(seed: int, stream: str) -> None:
    index = np.arange(10_000)
    one, other = Draws(1, "a").fraction(index), Draws(seed, stream).fraction(index)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


def test_fractions_are_uniform_and_uncorrelated() -> None:
    values = Draws(3, "u").fraction(np.arange(100_000))
    assert values.min() >= 0 and values.max() < 1
    assert np.histogram(values, 10, (0, 1))[0] == pytest.approx(10_000, rel=0.04)
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.01


def test_largest_bits_stay_below_one() -> None:
    assert fraction(np.array([WORD], np.uint64))[0] < 1


def test_below_takes_one_limit_for_every_index() -> None:
    limits = np.array([1, 2, 3] * 1_000)
    values = Draws(3, "b").below(limits, np.arange(3_000))
    assert (values < limits).all()
    assert [values[i::3].max() for i in range(3)] == [0, 1, 2]


def test_below_the_largest_limit() -> None:
    values = Draws(3, "b").below(2**32, np.arange(1_000))
    assert values.min() >= 0 and 2**31 < values.max() < 2**32
