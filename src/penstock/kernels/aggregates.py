"""What an aggregate keeps of rows it has seen, and how that becomes a result.

Every aggregate of the language is three functions over groups of rows: ``begin`` makes a state of
rows, ``merge`` one state of several, ``finish`` a result of a state. A state is one or more Arrow
columns. Merging is exact and depends neither on the order of rows nor on how they were grouped
before, so a result is a function of the rows alone. Where rows tie (``min_by``, ``max_by``), the
one with the least value counts.

A new aggregate is one class here, one line in ``_KINDS``, and a case in ``test_aggregates``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.exact_sum import (
    UNIT_BITS,
    divide,
    merge_sums,
    round_sums,
    sum_values,
    whole_numbers,
)
from penstock.kernels.segments import Ints, Segments
from penstock.model.types import DataType

Columns = Sequence[pa.Array]
_LOW = 0xFFFFFFFF


class AggregateKind(Protocol):
    """One aggregate function over arguments of some types; ``width`` columns of state."""

    @property
    def width(self) -> int: ...

    def begin(self, arguments: Columns, segments: Segments) -> list[pa.Array]:
        """The state of each group of rows."""

    def merge(self, states: Columns, segments: Segments) -> list[pa.Array]:
        """The state of each group of states."""

    def finish(self, states: Columns) -> pa.Array:
        """The result of each state."""


def kind_of(function: str, types: Sequence[DataType]) -> AggregateKind | None:
    """How ``function`` is computed for arguments of these types; None if kernels cannot.

    >>> kind_of("sum", [DataType.BIGINT]).width
    3
    >>> kind_of("approx_count_distinct", [DataType.STRING]) is None
    True
    """
    make = _KINDS.get(function)
    return None if make is None else make(types)


@dataclass(frozen=True)
class _Count:
    """``count(*)`` without arguments, ``count(value)`` with one, ``count_if`` of conditions."""

    conditions: bool = False
    width: int = 1

    def begin(self, arguments: Columns, segments: Segments) -> list[pa.Array]:
        if not arguments:
            return [pa.array(np.diff(segments.bounds))]
        if self.conditions:
            counted = pc.fill_null(arguments[0], False)
        else:
            counted = arguments[0].is_valid()
        return [pa.array(segments.sum(_to_numbers(counted)))]

    def merge(self, states: Columns, segments: Segments) -> list[pa.Array]:
        return [pa.array(segments.sum(states[0].to_numpy()))]

    def finish(self, states: Columns) -> pa.Array:
        return states[0]


@dataclass(frozen=True)
class _IntegerSum:
    """Integers, exactly: sums of the upper and the lower 32 bits, and how many there were.

    A sum that does not fit a bigint is null, whatever the sums on the way to it were.
    """

    mean: bool = False
    width: int = 3

    def begin(self, arguments: Columns, segments: Segments) -> list[pa.Array]:
        if not arguments[0].null_count:
            values, count = _to_numbers(arguments[0]), np.diff(segments.bounds)
        else:
            values = _to_numbers(pc.fill_null(arguments[0], 0))
            count = segments.sum(_to_numbers(arguments[0].is_valid()))
        sums = (segments.sum(values >> 32), segments.sum(values & _LOW), count)
        return [pa.array(part) for part in sums]

    def merge(self, states: Columns, segments: Segments) -> list[pa.Array]:
        return [pa.array(segments.sum(state.to_numpy())) for state in states]

    def finish(self, states: Columns) -> pa.Array:
        upper, lower, count = (state.to_numpy() for state in states)
        upper, lower = upper + (lower >> 32), lower & _LOW
        if self.mean:
            return pa.array(
                [
                    divide((int(high) << 32) + int(low), int(rows)) if rows else None
                    for high, low, rows in zip(upper, lower, count, strict=True)
                ],
                pa.float64(),
            )
        fits = (upper >= -(2**31)) & (upper < 2**31) & (count > 0)
        total = (np.where(fits, upper, 0) << 32) + lower
        return pa.array(total, mask=None if fits.all() else ~fits)


@dataclass(frozen=True)
class _DoubleSum:
    """Doubles, exactly (see ``exact_sum``), and how many there were."""

    mean: bool = False
    width: int = 2

    def begin(self, arguments: Columns, segments: Segments) -> list[pa.Array]:
        values, valid = _to_doubles(arguments[0])
        count = segments.sum(valid.astype(np.int64))
        return [sum_values(values, valid, segments), pa.array(count)]

    def merge(self, states: Columns, segments: Segments) -> list[pa.Array]:
        count = segments.sum(states[1].to_numpy())
        return [merge_sums(states[0], segments), pa.array(count)]

    def finish(self, states: Columns) -> pa.Array:
        counts = states[1].to_numpy()
        none = counts == 0
        if not self.mean:
            return pc.if_else(pa.array(none), pa.scalar(None, pa.float64()), round_sums(states[0]))
        means = [
            _mean(total, int(count))
            for total, count in zip(whole_numbers(states[0]), counts, strict=True)
        ]
        return pa.array(means, pa.float64())


def _mean(total: int | float, count: int) -> float | None:
    if not count:
        return None
    return total if isinstance(total, float) else divide(total, count << UNIT_BITS)


@dataclass(frozen=True)
class _Variance:
    """The variance of a sample, or its root: the count, the sum and the sum of squares, exactly."""

    root: bool = False
    width: int = 3

    def begin(self, arguments: Columns, segments: Segments) -> list[pa.Array]:
        values, valid = _to_doubles(arguments[0])
        return [
            pa.array(segments.sum(valid.astype(np.int64))),
            sum_values(values, valid, segments),
            sum_values(values, valid, segments, squared=True),
        ]

    def merge(self, states: Columns, segments: Segments) -> list[pa.Array]:
        count = pa.array(segments.sum(states[0].to_numpy()))
        return [count, merge_sums(states[1], segments), merge_sums(states[2], segments)]

    def finish(self, states: Columns) -> pa.Array:
        parts = (states[0].to_pylist(), whole_numbers(states[1]), whole_numbers(states[2]))
        found = [_variance(*state) for state in zip(*parts, strict=True)]
        if self.root:
            found = [None if variance is None else math.sqrt(variance) for variance in found]
        return pa.array(found, pa.float64())


def _variance(count: int, total: int | float, squares: int | float) -> float | None:
    if count < 2:
        return None
    if isinstance(total, float) or isinstance(squares, float):
        return float("nan")
    return divide(count * squares - total * total, count * (count - 1) << 2 * UNIT_BITS)


@dataclass(frozen=True)
class _Extreme:
    """The least or greatest value; NaN is greater than every number, as in Spark."""

    greatest: bool
    width: int = 1

    def begin(self, arguments: Columns, segments: Segments) -> list[pa.Array]:
        values = arguments[0]
        if pa.types.is_integer(values.type) and not values.null_count:
            numbers = _to_numbers(values)
            best = segments.max(numbers) if self.greatest else segments.min(numbers)
            return [pa.array(best, values.type)]
        rows = _best_rows(_total_ranks(values), segments, self.greatest)
        return [values.take(rows)]

    def merge(self, states: Columns, segments: Segments) -> list[pa.Array]:
        return self.begin(states, segments)

    def finish(self, states: Columns) -> pa.Array:
        return states[0]


@dataclass(frozen=True)
class _ExtremeBy:
    """The value where another one is least or greatest; of several the least, null last."""

    greatest: bool
    width: int = 2

    def begin(self, arguments: Columns, segments: Segments) -> list[pa.Array]:
        values = _total_ranks(arguments[0])
        ties = np.where(values < 0, np.iinfo(np.int64).max, values)
        rows = _best_rows(_ranks(arguments[1]), segments, self.greatest, ties)
        return [column.take(rows) for column in arguments]

    def merge(self, states: Columns, segments: Segments) -> list[pa.Array]:
        return self.begin(states, segments)

    def finish(self, states: Columns) -> pa.Array:
        return states[0]


def _best_rows(
    ranks: Ints, segments: Segments, greatest: bool, ties: Ints | None = None
) -> pa.Array:
    """For each group a row with its least or greatest rank; null where no row has a rank.

    Among rows of equal rank it is one with the least of ``ties``.
    """
    if not len(segments):
        return pa.array([], pa.int64())
    limits = np.iinfo(np.int64)
    best = segments.max(ranks) if greatest else segments.min(np.where(ranks < 0, limits.max, ranks))
    none = (best < 0) | (best == limits.max)
    is_best = segments.spread(best, len(ranks)) == ranks
    if ties is not None:
        least = segments.min(np.where(is_best, ties, limits.max))
        is_best &= segments.spread(least, len(ties)) == ties
    rows = segments.min(np.where(is_best, np.arange(len(ranks)), limits.max))
    return pa.array(np.where(none, 0, rows), mask=none if none.any() else None)


def _total_ranks(values: pa.Array) -> Ints:
    """Ranks by which nothing ties but what is the same: the negative zero comes before zero."""
    ranks = _ranks(values)
    if not pa.types.is_floating(values.type):
        return ranks
    doubles = pc.fill_null(values, 0.0).to_numpy()
    return np.where(ranks < 0, ranks, 2 * ranks + ((doubles == 0) & ~np.signbit(doubles)))


def _ranks(values: pa.Array) -> Ints:
    """The place of each value among all, equal values alike; -1 for null."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    if pa.types.is_floating(values.type):
        nan = pc.fill_null(pc.is_nan(values), False).to_numpy(zero_copy_only=False)
        ranks[nan] = len(values) + 1
    if values.null_count:
        ranks[values.is_null().to_numpy(zero_copy_only=False)] = -1
    found: Ints = ranks
    return found


def _to_numbers(values: pa.Array) -> Ints:
    numbers: Ints = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers


def _to_doubles(values: pa.Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    doubles = values.cast(pa.float64(), safe=False)
    if not values.null_count:
        return doubles.to_numpy(), np.ones(len(values), bool)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return pc.fill_null(doubles, 0.0).to_numpy(zero_copy_only=False), valid


_INTEGERS = (DataType.INT, DataType.BIGINT)


def _sum(types: Sequence[DataType], mean: bool) -> AggregateKind | None:
    if types[0] in _INTEGERS:
        return _IntegerSum(mean)
    return _DoubleSum(mean) if types[0] is DataType.DOUBLE else None


def _variance_of(types: Sequence[DataType], root: bool) -> AggregateKind | None:
    return _Variance(root) if types[0] in (*_INTEGERS, DataType.DOUBLE) else None


_RANKED = (
    DataType.BOOLEAN,
    *_INTEGERS,
    DataType.DOUBLE,
    DataType.STRING,
    DataType.TIMESTAMP,
    DataType.DATE,
)

_KINDS: Mapping[str, Callable[[Sequence[DataType]], AggregateKind | None]] = {
    "count": lambda types: _Count(),
    "count_if": lambda types: _Count(conditions=True),
    "sum": lambda types: _sum(types, mean=False),
    "avg": lambda types: _sum(types, mean=True),
    "variance": lambda types: _variance_of(types, root=False),
    "stddev": lambda types: _variance_of(types, root=True),
    "min": lambda types: _Extreme(greatest=False) if types[0] in _RANKED else None,
    "max": lambda types: _Extreme(greatest=True) if types[0] in _RANKED else None,
    "min_by": lambda types: _ExtremeBy(greatest=False) if types[1] in _RANKED else None,
    "max_by": lambda types: _ExtremeBy(greatest=True) if types[1] in _RANKED else None,
}
