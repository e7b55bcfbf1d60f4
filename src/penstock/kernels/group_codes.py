"""Groups of rows by small numbers: what is equal has one number, made once for all who group by it.

Hundreds of members group the same rows by the same few keys and slices, each after a filter of its
own. So keys and slices become dense numbers once (:func:`combine`), and a member's groups are found
by one pass over those of the rows that it keeps (:func:`group_chosen`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.segments import Ints, Segments
from penstock.load.compiled import compiled

Mask = npt.NDArray[np.bool_]

_LEAST_NUMBERS = 4_096
_NUMBERS_A_ROW = 4


@dataclass(frozen=True)
class Codes:
    """A number below ``size`` for every row; rows are alike if and only if their numbers are."""

    numbers: Ints
    size: int


def codes_of(values: pa.Array) -> Codes:
    """Codes of values; null is a value like others.

    Doubles must be normalised: they are told apart by their bits.

    >>> codes_of(pa.array(["b", None, "b"])).numbers.tolist()
    [0, 1, 0]
    """
    if pa.types.is_integer(values.type) and not values.null_count:
        return codes_of_numbers(values.to_numpy().astype(np.int64))
    encoded = values.dictionary_encode(null_encoding="encode")
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return Codes(numbers, max(1, len(encoded.dictionary)))


def codes_of_numbers(values: Ints) -> Codes:
    """Codes of integers, quick where they lie close together."""
    if not len(values):
        return Codes(values, 1)
    low, high = int(values.min()), int(values.max())
    if high - low < _most_numbers(len(values)):
        return Codes(values - low, high - low + 1)
    return _densified(values)


def combine(parts: Iterable[Codes], rows: int) -> Codes:
    """Codes of rows by several things at once; all rows are alike by nothing."""
    found = Codes(np.zeros(rows, np.int64), 1)
    for part in parts:
        numbers, size = found.numbers * part.size + part.numbers, found.size * part.size
        found = Codes(numbers, size) if size <= _most_numbers(rows) else _densified(numbers)
    return found


def _most_numbers(rows: int) -> int:
    return max(_LEAST_NUMBERS, _NUMBERS_A_ROW * rows)


def _densified(values: Ints) -> Codes:
    distinct, numbers = np.unique(values, return_inverse=True)
    return Codes(numbers.astype(np.int64), max(1, len(distinct)))


def group_chosen(codes: Codes, chosen: Mask) -> Segments:
    """The chosen rows by their codes; groups come in the order of their first rows.

    >>> codes = codes_of(pa.array(["a", "b", "a", "b"]))
    >>> found = group_chosen(codes, np.array([False, True, True, True]))
    >>> found.order.tolist(), found.bounds.tolist()
    ([1, 3, 2], [0, 2, 3])
    """
    return Segments(*_group(codes.numbers, codes.size, chosen))


@compiled
def _group(numbers: Ints, size: int, chosen: Mask) -> tuple[Ints, Ints]:
    group_of = np.full(size, -1, np.int64)
    counts = np.zeros(min(size, len(numbers)) + 1, np.int64)
    groups, rows = 0, 0
    for row in range(len(numbers)):
        if chosen[row]:
            if group_of[numbers[row]] < 0:
                group_of[numbers[row]] = groups
                groups += 1
            counts[group_of[numbers[row]]] += 1
            rows += 1
    bounds = np.zeros(groups + 1, np.int64)
    for group in range(groups):
        bounds[group + 1] = bounds[group] + counts[group]
    following, order = bounds[:-1].copy(), np.empty(rows, np.int64)
    for row in range(len(numbers)):
        if chosen[row]:
            group = group_of[numbers[row]]
            order[following[group]] = row
            following[group] += 1
    return order, bounds
