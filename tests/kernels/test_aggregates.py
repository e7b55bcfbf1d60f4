"""Every aggregate against plain Python, merged from parts cut anywhere."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels.aggregates import AggregateKind, kind_of
from penstock.kernels.segments import group_rows
from penstock.model.types import DataType

INTEGERS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5))
DOUBLES = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False, width=64))
ANY_DOUBLES = st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0, 1.0]))
STRINGS = st.one_of(st.none(), st.text("aäz€", max_size=3))


def _aggregate(kind: AggregateKind, columns: list[pa.Array], cuts: list[int]) -> object:
    """The result over all rows, put together from the parts between the cuts."""
    count = len(columns[0])
    edges = sorted({0, count, *(cut for cut in cuts if cut < count)})
    parts = []
    for low, high in pairwise(edges):
        rows = [column.slice(low, high - low) for column in columns]
        parts.append(kind.begin(rows, group_rows([], high - low)))
    states = [pa.concat_arrays(list(state)) for state in zip(*parts, strict=True)]
    merged = kind.merge(states, group_rows([], len(parts)))
    return kind.finish(merged)[0].as_py()


def _known(values: list) -> list:
    return [value for value in values if value is not None]


def _nearest(whole: Fraction) -> float:
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


def _variance(values: list[float]) -> float | None:
    known = [Fraction(value) for value in _known(values)]
    if len(known) < 2:
        return None
    mean = sum(known) / len(known)
    return _nearest(sum((value - mean) ** 2 for value in known) / (len(known) - 1))


def _order(value: float) -> tuple[bool, float]:
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def _total(value: float) -> tuple[bool, float, float]:
    return (*_order(value), math.copysign(1, value) if value == 0 else 0)


cuts = st.lists(st.integers(1, 20), max_size=4)


@given(st.lists(INTEGERS, min_size=1, max_size=20), cuts)
def test_integers(values: list[int | None], cuts: list[int]) -> None:
    rows, known = [pa.array(values, pa.int64())], _known(values)
    types = [DataType.BIGINT]
    total = sum(known)
    fits = bool(known) and -(2**63) <= total < 2**63
    assert _aggregate(kind_of("sum", types), rows, cuts) == (total if fits else None)
    mean = _nearest(Fraction(total, len(known))) if known else None
    assert _aggregate(kind_of("avg", types), rows, cuts) == mean
    assert _aggregate(kind_of("count", types), rows, cuts) == len(known)
    assert _aggregate(kind_of("min", types), rows, cuts) == min(known, default=None)
    assert _aggregate(kind_of("max", types), rows, cuts) == max(known, default=None)


@given(st.lists(DOUBLES, min_size=1, max_size=20), cuts)
def test_doubles(values: list[float | None], cuts: list[int]) -> None:
    rows, known = [pa.array(values, pa.float64())], _known(values)
    types = [DataType.DOUBLE]
    total = sum(map(Fraction, known), Fraction())
    assert _aggregate(kind_of("sum", types), rows, cuts) == (_nearest(total) if known else None)
    mean = _nearest(total / len(known)) if known else None
    assert _aggregate(kind_of("avg", types), rows, cuts) == mean
    variance = _variance(values)
    assert _aggregate(kind_of("variance", types), rows, cuts) == variance
    root = None if variance is None else math.sqrt(variance)
    assert _aggregate(kind_of("stddev", types), rows, cuts) == root


@given(st.lists(ANY_DOUBLES, min_size=1, max_size=20), cuts)
def test_nan_is_the_greatest_double(values: list[float | None], cuts: list[int]) -> None:
    rows, known = [pa.array(values, pa.float64())], _known(values)
    least = _aggregate(kind_of("min", [DataType.DOUBLE]), rows, cuts)
    greatest = _aggregate(kind_of("max", [DataType.DOUBLE]), rows, cuts)
    # The negative zero is the lesser one, whichever came first.
    wanted = (min(known, key=_total, default=None), max(known, key=_total, default=None))
    assert (repr(least), repr(greatest)) == tuple(map(repr, wanted))


@given(st.lists(st.tuples(STRINGS, ANY_DOUBLES), min_size=1, max_size=20), cuts)
def test_the_least_of_those_that_tie_counts(pairs: list[tuple], cuts: list[int]) -> None:
    columns = [
        pa.array([pair[0] for pair in pairs], pa.string()),
        pa.array([pair[1] for pair in pairs], pa.float64()),
    ]
    types = [DataType.STRING, DataType.DOUBLE]
    known = [_order(pair[1]) for pair in pairs if pair[1] is not None]
    for function, best in (("min_by", min), ("max_by", max)):
        tied = [value for value, by in pairs if by is not None and _order(by) == best(known)]
        wanted = min(_known(tied), key=str.encode, default=None)
        assert _aggregate(kind_of(function, types), columns, cuts) == wanted


@given(st.lists(st.sampled_from([None, True, False]), min_size=1, max_size=20), cuts)
def test_conditions(values: list[bool | None], cuts: list[int]) -> None:
    rows, types = [pa.array(values, pa.bool_())], [DataType.BOOLEAN]
    assert _aggregate(kind_of("count_if", types), rows, cuts) == values.count(True)
    assert _aggregate(kind_of("max", types), rows, cuts) == max(_known(values), default=None)


@pytest.mark.parametrize("function", ["approx_count_distinct", "nothing_of_the_kind"])
def test_what_kernels_do_not_have(function: str) -> None:
    assert kind_of(function, [DataType.STRING]) is None
