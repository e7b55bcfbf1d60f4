"""64-bit hashes of join keys: equal keys have equal hashes, whatever arrays they come in.

Keys are equal as Spark has it: NaN = NaN, -0.0 = 0.0, and null equals nothing. The hash is built
from the finaliser of SplitMix64 (Steele, Lea and Flood 2014); it has nothing in common with the
CRC-32 that shares rows out to groups, so that keys of one group spread evenly over its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InputError
from penstock.load.arrays import Flags, frozen
from penstock.load.compiled import compiled

Bits: TypeAlias = npt.NDArray[np.uint64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _8 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(8)
_BINARIES = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def comparable_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type as which keys of two columns are compared; an error if there is none.

    >>> comparable_type(pa.int32(), pa.int64()), comparable_type(pa.int64(), pa.float64())
    (DataType(int64), DataType(double))
    """
    if left == right and _is_hashable(left):
        return left
    numbers = (left, right)
    if all(pa.types.is_signed_integer(type) for type in numbers):
        return pa.int64()
    if all(pa.types.is_signed_integer(type) or pa.types.is_floating(type) for type in numbers):
        return pa.float64()
    raise InputError(
        f"rows cannot be joined by a key of type {left} and one of type {right}",
        hint="Keys are booleans, numbers, strings, binaries, dates or timestamps, of one type.",
    )


def _is_hashable(type: pa.DataType) -> bool:
    return type in _BINARIES or any(
        test(type)
        for test in (
            pa.types.is_boolean,
            pa.types.is_signed_integer,
            pa.types.is_floating,
            pa.types.is_date32,
            pa.types.is_timestamp,
        )
    )


def hash_keys(columns: Sequence[pa.Array], rows: int) -> tuple[Bits, Flags | None]:
    """The hash of every row's keys, and which rows have no null among them (None: all).

    >>> hashes, complete = hash_keys([pa.array([0.0, -0.0, None])], 3)
    >>> bool(hashes[0] == hashes[1]), complete.tolist()
    (True, [True, True, False])
    """
    hashes = np.zeros(rows, np.uint64)
    complete: Flags | None = None
    for column in columns:
        if column.null_count:
            present: Flags = column.is_valid().to_numpy(zero_copy_only=False)
            complete = present if complete is None else complete & present
        if column.type in _BINARIES:
            data, offsets = _bytes_of(column)
            _mix_in_bytes(hashes, data, offsets)
        else:
            _mix_in_words(hashes, key_words(column))
    return hashes, complete


def key_words(column: pa.Array) -> Bits:
    """Every key of fixed width as 64 bits that are equal exactly if the keys are; null is 0."""
    type = column.type
    if pa.types.is_date32(type):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(type):
        column = column.view(pa.int64())
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(0).cast(column.type))
    if pa.types.is_floating(type):
        values = column.cast(pa.float64()).to_numpy() + 0.0  # -0.0 + 0.0 is 0.0
        values[np.isnan(values)] = np.nan
        column = pa.array(values).view(pa.int64())
    numbers = column.to_numpy(zero_copy_only=False)
    words = np.ascontiguousarray(numbers, np.int64).view(np.uint64)
    frozen(words)  # as those are that lie in Arrow's memory: loops are compiled for one kind
    return words


def _bytes_of(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    """The bytes of all texts, and where each begins and ends in them."""
    _, offsets, data = column.buffers()
    wide = column.type in _BINARIES[2:]
    places = np.frombuffer(offsets, np.int64 if wide else np.int32)
    places = places[column.offset : column.offset + len(column) + 1]
    if data is None or not data.size:
        return np.frombuffer(b"", np.uint8), places
    return np.frombuffer(data, np.uint8), places


@compiled
def _mix(bits: np.uint64) -> np.uint64:
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    return bits ^ (bits >> _31)


@compiled
def _mix_in_words(hashes: Bits, words: Bits) -> None:
    for at in range(len(hashes)):
        hashes[at] = _mix((hashes[at] + _GAMMA) ^ words[at])


@compiled
def _mix_in_bytes(
    hashes: Bits, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> None:
    """Eight bytes at a time; the length is mixed in, so that no text is another's beginning."""
    for at in range(len(hashes)):
        start, stop = offsets[at], offsets[at + 1]
        found = (hashes[at] + _GAMMA) ^ np.uint64(stop - start)
        while start < stop:
            word = np.uint64(0)
            for byte in range(min(start + 8, stop) - 1, start - 1, -1):
                word = (word << _8) | np.uint64(data[byte])
            found = _mix(found ^ word) + _GAMMA
            start += 8
        hashes[at] = _mix(found)
