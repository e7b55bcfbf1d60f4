"""Exact sums against rational arithmetic, in any order and cut into any parts."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels.exact_sum import merge_sums, round_sums, sum_values
from penstock.kernels.segments import Segments

pytestmark = pytest.mark.core

doubles = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=30)


def exact(values: list[float]) -> float:
    whole = sum(map(Fraction, values), Fraction())
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


def one_sum(values: list[float]) -> pa.ListArray:
    given_values = np.array(values, np.float64)
    segments = Segments(np.arange(len(values), dtype=np.int64), np.array([0, len(values)]))
    return sum_values(given_values, np.ones(len(values), bool), segments)


@given(doubles)
def test_a_sum_is_the_exact_sum_rounded_once(values: list[float]) -> None:
    assert round_sums(one_sum(values)).to_pylist() == [exact(values)]


@given(doubles, st.lists(st.integers(0, 30)), st.randoms(use_true_random=False))
def test_order_and_cuts_do_not_matter(values, cuts, random) -> None:
    shuffled = values[:]
    random.shuffle(shuffled)
    edges = sorted({0, len(values), *(cut for cut in cuts if cut <= len(values))})
    parts = [one_sum(shuffled[low:high]) for low, high in pairwise(edges)]
    if not parts:
        return
    merged = merge_sums(
        pa.concat_arrays(parts),
        Segments(np.arange(len(parts), dtype=np.int64), np.array([0, len(parts)])),
    )
    assert merged.to_pylist() == one_sum(values).to_pylist()


def test_groups_are_summed_apart_and_nulls_left_out() -> None:
    values = np.array([1.5, 2.5, 1e300, -1e300, 7.0])
    valid = np.array([True, True, True, True, False])
    segments = Segments(np.array([0, 2, 3, 1, 4]), np.array([0, 3, 5]))
    assert round_sums(sum_values(values, valid, segments)).to_pylist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([math.inf, 1.0], math.inf),
        ([-math.inf, 1.0], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
        ([-0.0], 0.0),
        ([5e-324, 5e-324], 1e-323),
        ([1.7976931348623157e308] * 2, math.inf),
        ([1.7976931348623157e308] * 2 + [-1.7976931348623157e308], 1.7976931348623157e308),
    ],
)
def test_edges(values: list[float], wanted: float) -> None:
    found = round_sums(one_sum(values))[0].as_py()
    assert found == wanted or (math.isnan(found) and math.isnan(wanted))


def test_many_rows_and_merges_do_not_overflow_a_limb() -> None:
    largest = [math.nextafter(2.0**40, 0)] * 4000
    sums = pa.concat_arrays([one_sum(largest)] * 1000)
    whole = Segments(np.arange(1000, dtype=np.int64), np.array([0, 1000]))
    assert round_sums(merge_sums(sums, whole)).to_pylist() == [exact(largest) * 1000]
