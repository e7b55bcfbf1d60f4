"""Orders rows by place, then by time, then by arrival: in time linear in the rows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.kernels.window_join.hashing import Bits
from penstock.load.arrays import Ints
from penstock.load.compiled import compiled

Rows: TypeAlias = npt.NDArray[np.uint32]

_DIGIT = 11
_DIGITS = np.uint64((1 << _DIGIT) - 1)
_BUCKETS = 1 << _DIGIT


@compiled
def order_by(places: Bits, times: Ints) -> Rows:
    """The rows in the order of (place, time, row): digit by digit, least significant first."""
    count = len(places)
    order = np.arange(count).astype(np.uint32)
    keys = np.empty(count, np.uint64)
    spare_order, spare_keys = np.empty(count, np.uint32), np.empty(count, np.uint64)
    earliest, in_order = _earliest(times)
    if not in_order:
        for at in range(count):
            keys[at] = np.uint64(times[at] - earliest)
        order, keys, spare_order, spare_keys = _sort(order, keys, spare_order, spare_keys)
    for at in range(count):
        keys[at] = places[order[at]]
    return _sort(order, keys, spare_order, spare_keys)[0]


@compiled
def _earliest(times: Ints) -> tuple[int, bool]:
    in_order = True
    earliest = int(times[0]) if len(times) else 0
    for at in range(1, len(times)):
        if times[at] < times[at - 1]:
            in_order = False
            earliest = min(earliest, int(times[at]))
    return earliest, in_order


@compiled
def _sort(
    order: Rows, keys: Bits, spare_order: Rows, spare_keys: Bits
) -> tuple[Rows, Bits, Rows, Bits]:
    """Rows and keys in the order of the keys, equal ones as they were; then the other two."""
    count = len(order)
    passes = (64 + _DIGIT - 1) // _DIGIT
    counts = np.zeros((passes, _BUCKETS), np.int64)
    for at in range(count):
        key = keys[at]
        for number in range(passes):
            counts[number, (key >> np.uint64(number * _DIGIT)) & _DIGITS] += 1
    for number in range(passes):
        shift = np.uint64(number * _DIGIT)
        starts = counts[number]
        if count == 0 or starts[(keys[0] >> shift) & _DIGITS] == count:
            continue  # all keys have the same digit here
        before = 0
        for bucket in range(_BUCKETS):
            here = starts[bucket]
            starts[bucket] = before
            before += here
        for at in range(count):
            bucket = (keys[at] >> shift) & _DIGITS
            to = starts[bucket]
            starts[bucket] = to + 1
            spare_keys[to] = keys[at]
            spare_order[to] = order[at]
        order, spare_order = spare_order, order
        keys, spare_keys = spare_keys, keys
    return order, keys, spare_order, spare_keys


@compiled
def merge(
    places: Bits, times: Ints, rows: Rows,
    other_places: Bits, other_times: Ints, other_rows: Rows, offset: int,
) -> tuple[Bits, Ints, Rows]:  # fmt: skip
    """Two sorted sequences as one; the rows of the other are ``offset`` further on."""
    mine, others = len(places), len(other_places)
    merged_places = np.empty(mine + others, np.uint64)
    merged_times = np.empty(mine + others, np.int64)
    merged_rows = np.empty(mine + others, np.uint32)
    left = right = 0
    for at in range(mine + others):
        if right == others or (
            left < mine
            and (
                places[left] < other_places[right]
                or (places[left] == other_places[right] and times[left] <= other_times[right])
            )
        ):
            merged_places[at], merged_times[at] = places[left], times[left]
            merged_rows[at] = rows[left]
            left += 1
        else:
            merged_places[at], merged_times[at] = other_places[right], other_times[right]
            merged_rows[at] = other_rows[right] + np.uint32(offset)
            right += 1
    return merged_places, merged_times, merged_rows
