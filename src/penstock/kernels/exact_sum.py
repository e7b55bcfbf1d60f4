"""Sums of doubles that do not depend on the order of additions.

Adding doubles rounds at every step, so a sum depends on where batches were cut and which task
came first. Here a sum is kept exactly, as one long binary number, and rounded once, when it is
asked for. The same rows then give the same result, however they were cut, spread or replayed.

A double is ``mantissa * 2 ** (place - 1074)`` with a mantissa of 53 bits. The long number is kept
in *limbs* of 32 bits, each in an int64 of its own, so that additions need no carry until the end.
Only the limbs that are used are stored: ``base`` is the number of the first. Infinities and NaN are
three flags beside it.

An exact sum is stored as a list of int64: ``[base | flags << 16, limb, limb, ...]``. Work grows
with rows plus limbs: values of similar size share two or three limbs, the widest spread needs 66,
and squares twice as many.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.segments import Ints, Segments
from penstock.load.compiled import compiled

Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LIMB_BITS = 32
_LOW = (1 << _LIMB_BITS) - 1
_FLAG_BITS = 16
_BASE = (1 << _FLAG_BITS) - 1
_PLUS_INFINITY, _MINUS_INFINITY, _NAN = 1, 2, 4

UNIT_BITS = 1074
"""Every double is a multiple of ``2 ** -UNIT_BITS``."""


def sum_values(
    values: Doubles, valid: Mask, segments: Segments, *, squared: bool = False
) -> pa.ListArray:
    """The exact sum of each segment's valid values, or of their squares.

    >>> whole = Segments.whole(3)
    >>> tenths = np.array([0.1, 0.2, -0.3])
    >>> round_sums(sum_values(tenths, np.ones(3, bool), whole)).to_pylist()
    [2.7755575615628914e-17]
    """
    bits = values.view(np.int64)
    order, bounds = segments.order, segments.bounds
    first, count, flags = _measure_values(bits, valid, order, bounds, squared)
    starts = np.concatenate(([0], np.cumsum(count)))
    limbs = np.zeros(starts[-1], np.int64)
    _add_values(bits, valid, order, bounds, first, starts, limbs, squared)
    return _store(first, flags, starts, limbs)


def merge_sums(sums: pa.ListArray, segments: Segments) -> pa.ListArray:
    """The exact sum of each segment's exact sums."""
    heads, limbs_in, edges = _load(sums)
    first, count, flags = _measure_sums(heads, edges, segments.order, segments.bounds)
    starts = np.concatenate(([0], np.cumsum(count)))
    limbs = np.zeros(starts[-1], np.int64)
    _add_sums(heads, limbs_in, edges, segments.order, segments.bounds, first, starts, limbs)
    return _store(first, flags, starts, limbs)


def round_sums(sums: pa.ListArray) -> pa.DoubleArray:
    """Each exact sum as the nearest double, ties to even."""
    return pa.array([_round(parts) for parts in sums.to_pylist()], pa.float64())


def whole_numbers(sums: pa.ListArray) -> list[int | float]:
    """Each exact sum as a multiple of ``2 ** -UNIT_BITS``, or a NaN or an infinity.

    Sums of squares are multiples of ``2 ** (-2 * UNIT_BITS)``.
    """
    return [_whole_number(parts) for parts in sums.to_pylist()]


def _whole_number(parts: list[int]) -> int | float:
    flags = parts[0] >> _FLAG_BITS
    if flags:
        both = _PLUS_INFINITY | _MINUS_INFINITY
        if flags & _NAN or flags & both == both:
            return float("nan")
        return float("inf") if flags & _PLUS_INFINITY else float("-inf")
    number = 0
    for limb in reversed(parts[1:]):
        number = (number << _LIMB_BITS) + limb
    return number << (_LIMB_BITS * (parts[0] & _BASE))


def _round(parts: list[int]) -> float:
    exact = _whole_number(parts)
    return exact if isinstance(exact, float) else divide(exact, 1 << UNIT_BITS)


def divide(numerator: int, denominator: int) -> float:
    """The double nearest to a quotient of integers; infinite where none is near enough.

    >>> divide(1, 3), divide(-(10**400), 1)
    (0.3333333333333333, -inf)
    """
    try:
        return numerator / denominator
    except OverflowError:
        return float("inf") if (numerator > 0) == (denominator > 0) else float("-inf")


def _load(sums: pa.ListArray) -> tuple[Ints, Ints, Ints]:
    """The first numbers, all numbers, and where each list begins and ends."""
    edges = sums.offsets.to_numpy().astype(np.int64)
    numbers = sums.values.to_numpy()
    return numbers[edges[:-1]], numbers, edges


def _store(first: Ints, flags: Ints, starts: Ints, limbs: Ints) -> pa.ListArray:
    lengths, bases = _settle(first, starts, limbs)
    edges = np.concatenate(([0], np.cumsum(lengths + 1)))
    numbers = np.empty(edges[-1], np.int64)
    _copy(bases, flags, starts, limbs, edges, numbers)
    return pa.ListArray.from_arrays(pa.array(edges, pa.int32()), pa.array(numbers))


@compiled
def _measure_values(
    bits: Ints, valid: Mask, order: Ints, bounds: Ints, squared: bool
) -> tuple[Ints, Ints, Ints]:
    """For each segment the first limb its values touch, how many limbs, and the flags."""
    segments = len(bounds) - 1
    first = np.zeros(segments, np.int64)
    count = np.zeros(segments, np.int64)
    flags = np.zeros(segments, np.int64)
    for segment in range(segments):
        low, high = np.int64(1 << 30), np.int64(-1)
        for at in range(bounds[segment], bounds[segment + 1]):
            row = order[at]
            if not valid[row]:
                continue
            exponent = (bits[row] >> 52) & 0x7FF
            mantissa = bits[row] & 0xFFFFFFFFFFFFF
            if exponent == 0x7FF:
                if mantissa:
                    flags[segment] |= 4
                else:
                    flags[segment] |= 2 if bits[row] < 0 and not squared else 1
            elif exponent or mantissa:
                place = max(exponent, 1) - 1
                low = min(low, (2 * place if squared else place) >> 5)
                high = max(high, ((2 * place + 54 if squared else place) >> 5) + 2)
        if high >= 0:
            first[segment] = low
            count[segment] = high - low + 2  # one more, for what is carried over
    return first, count, flags


@compiled
def _add_at(limbs: Ints, base: int, place: int, number: int, sign: int) -> None:
    """Adds ``number * 2 ** place``, a number of at most 55 bits."""
    limb, shift = base + (place >> 5), place & 31
    low = (number & 0xFFFFFFFF) << shift
    high = (number >> 32) << shift
    limbs[limb] += sign * (low & 0xFFFFFFFF)
    limbs[limb + 1] += sign * (((low >> 32) & 0xFFFFFFFF) + (high & 0xFFFFFFFF))
    limbs[limb + 2] += sign * (high >> 32)


@compiled
def _add_values(
    bits: Ints,
    valid: Mask,
    order: Ints,
    bounds: Ints,
    first: Ints,
    starts: Ints,
    limbs: Ints,
    squared: bool,
) -> None:
    for segment in range(len(bounds) - 1):
        base = starts[segment] - first[segment]
        for at in range(bounds[segment], bounds[segment + 1]):
            row = order[at]
            exponent = (bits[row] >> 52) & 0x7FF
            mantissa = bits[row] & 0xFFFFFFFFFFFFF
            if not valid[row] or exponent == 0x7FF or (exponent == 0 and mantissa == 0):
                continue
            if exponent:
                mantissa |= 1 << 52
            place = max(exponent, 1) - 1
            if squared:
                low, high = mantissa & 0x7FFFFFF, mantissa >> 27
                _add_at(limbs, base, 2 * place, low * low, 1)
                _add_at(limbs, base, 2 * place + 28, low * high, 1)
                _add_at(limbs, base, 2 * place + 54, high * high, 1)
            else:
                _add_at(limbs, base, place, mantissa, -1 if bits[row] < 0 else 1)


@compiled
def _measure_sums(heads: Ints, edges: Ints, order: Ints, bounds: Ints) -> tuple[Ints, Ints, Ints]:
    segments = len(bounds) - 1
    first = np.zeros(segments, np.int64)
    count = np.zeros(segments, np.int64)
    flags = np.zeros(segments, np.int64)
    for segment in range(segments):
        low, high = np.int64(1 << 30), np.int64(-1)
        for at in range(bounds[segment], bounds[segment + 1]):
            row = order[at]
            flags[segment] |= heads[row] >> 16
            length = edges[row + 1] - edges[row] - 1
            if length:
                base = heads[row] & 0xFFFF
                low = min(low, base)
                high = max(high, base + length - 1)
        if high >= 0:
            first[segment] = low
            count[segment] = high - low + 2
    return first, count, flags


@compiled
def _add_sums(
    heads: Ints,
    numbers: Ints,
    edges: Ints,
    order: Ints,
    bounds: Ints,
    first: Ints,
    starts: Ints,
    limbs: Ints,
) -> None:
    for segment in range(len(bounds) - 1):
        for at in range(bounds[segment], bounds[segment + 1]):
            row = order[at]
            target = starts[segment] + (heads[row] & 0xFFFF) - first[segment]
            for limb in range(edges[row + 1] - edges[row] - 1):
                limbs[target + limb] += numbers[edges[row] + 1 + limb]


@compiled
def _settle(first: Ints, starts: Ints, limbs: Ints) -> tuple[Ints, Ints]:
    """Carries over, and leaves out empty limbs at both ends; lengths and bases that remain.

    All limbs but the last are then in [0, 2**32), and the same sum always has the same limbs.
    """
    segments = len(starts) - 1
    lengths = np.zeros(segments, np.int64)
    bases = np.zeros(segments, np.int64)
    for segment in range(segments):
        begin, end = starts[segment], starts[segment + 1]
        for limb in range(begin, end - 1):
            limbs[limb + 1] += limbs[limb] >> 32
            limbs[limb] &= 0xFFFFFFFF
        while end > begin and limbs[end - 1] == 0:
            end -= 1
        # A limb of -1 above another one is that one's sign.
        while end - begin > 1 and limbs[end - 1] == -1 and limbs[end - 2] != 0:
            end -= 1
            limbs[end - 1] -= 1 << 32
        low = begin
        while low < end and limbs[low] == 0:
            low += 1
        for limb in range(low, end):
            limbs[begin + limb - low] = limbs[limb]
        lengths[segment] = end - low
        bases[segment] = first[segment] + low - begin if end > low else 0
    return lengths, bases


@compiled
def _copy(bases: Ints, flags: Ints, starts: Ints, limbs: Ints, edges: Ints, numbers: Ints) -> None:
    for segment in range(len(bases)):
        at = edges[segment]
        numbers[at] = bases[segment] | (flags[segment] << 16)
        for limb in range(edges[segment + 1] - at - 1):
            numbers[at + 1 + limb] = limbs[starts[segment] + limb]
