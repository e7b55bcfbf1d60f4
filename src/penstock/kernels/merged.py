"""An aggregate over states instead of rows: what others have kept of rows, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.kernels.aggregates import AggregateKind
from penstock.kernels.segments import Segments

_NUMBER = np.dtype(np.int64).itemsize


@dataclass(frozen=True)
class Merged:
    """An aggregate that is given states of ``kind``, as columns of a stream; otherwise like it."""

    kind: AggregateKind

    @property
    def width(self) -> int:
        return self.kind.width

    def begin(self, arguments: Sequence[pa.Array], segments: Segments) -> list[pa.Array]:
        return self.kind.merge([unpack(argument) for argument in arguments], segments)

    def merge(self, states: Sequence[pa.Array], segments: Segments) -> list[pa.Array]:
        return self.kind.merge(states, segments)

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return self.kind.finish(states)


def pack(states: pa.Array) -> pa.Array:
    """A column of states as a column of a stream: lists of numbers as their bytes.

    >>> unpack(pack(pa.array([[1, -2], [3]]))).to_pylist()
    [[1, -2], [3]]
    """
    if not pa.types.is_list(states.type):
        return states
    edges = states.offsets.to_numpy()
    numbers = states.values.to_numpy()[edges[0] : edges[-1]]
    bounds = ((edges - edges[0]) * _NUMBER).astype(np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(numbers))]
    return pa.Array.from_buffers(pa.binary(), len(states), buffers)


def unpack(column: pa.Array) -> pa.Array:
    """A column of a stream as a column of states."""
    if not pa.types.is_binary(column.type):
        return column
    _, bounds, content = column.buffers()
    edges = np.frombuffer(bounds, np.int32)[column.offset : column.offset + len(column) + 1]
    body = memoryview(content)[edges[0] : edges[-1]] if len(column) else b""
    numbers = np.frombuffer(bytes(body), np.int64)
    lists = (edges - edges[0]) // _NUMBER if len(column) else np.zeros(1, np.int32)
    return pa.ListArray.from_arrays(pa.array(lists, pa.int32()), pa.array(numbers))
