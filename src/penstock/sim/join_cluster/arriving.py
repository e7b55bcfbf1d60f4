"""All tuples of a run, by partition group: when they arrive, with which key, on which stream."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.group_numbers import group_numbers
from penstock.kernels.window_join.hashing import hash_keys
from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled
from penstock.model.partition_groups import PartitionGroups
from penstock.sim.block import Block
from penstock.sim.join_cluster.settings import CELL_BITS, JoinWorkload
from penstock.sim.random import exponential, fraction, streams_of

_AT_ONCE = 1 << 20
_GAPS, _KEYS, _STREAMS = range(3)


class GroupLogs(NamedTuple):
    """The tuples of each group in order of arrival, one group after the other.

    Group g has the tuples from ``starts[g]`` to ``starts[g + 1]``. ``cells`` says to which of the
    finest mini-partitions of its group a tuple belongs.
    """

    times: Floats
    keys: npt.NDArray[np.int32]
    streams: npt.NDArray[np.uint8]
    cells: npt.NDArray[np.uint8]
    starts: Ints


def draw_arrivals(workload: JoinWorkload, until_s: float, seed: int) -> GroupLogs:
    """The tuples that both streams bring until ``until_s``; the same seed, the same tuples."""
    block = _generator(seed)
    room = int(2 * workload.rate_per_s * until_s * 1.05 + 1_000)
    times, keys, streams = (
        np.empty(room), np.empty(room, np.int32), np.empty(room, np.uint8),
    )  # fmt: skip
    count = _draw(
        block, times, keys, streams, 2 * workload.rate_per_s, until_s,
        workload.largest_key, workload.b, workload.hot,
    )  # fmt: skip
    groups, cells = np.empty(count, np.uint16), np.empty(count, np.uint8)
    sharing = PartitionGroups(("key",), workload.groups)
    for at in range(0, count, _AT_ONCE):
        part = slice(at, min(at + _AT_ONCE, count))
        column = pa.array(keys[part].astype(np.int64))
        groups[part] = group_numbers(pa.table({"key": column}), sharing)
        cells[part] = hash_keys([column], len(column))[0] >> np.uint64(64 - CELL_BITS)
    order = np.argsort(groups, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(groups, minlength=workload.groups))))
    return GroupLogs(times[order], keys[order], streams[order], cells[order], starts)


def _generator(seed: int) -> Block:
    words = streams_of(seed, purpose=7, count=3)
    return Block(words, words.view(np.float64))


@compiled
def _draw(
    block: Block, times: Floats, keys: npt.NDArray[np.int32], streams: npt.NDArray[np.uint8],
    rate_per_s: float, until_s: float, largest_key: int, b: float, hot: float,
) -> int:  # fmt: skip
    """Fills the arrays until a time is reached; how many tuples there are."""
    now, count = 0.0, 0
    while count < len(times):
        now += exponential(block, _GAPS) / rate_per_s
        if now >= until_s:
            break
        times[count] = now
        streams[count] = 1 if fraction(block, _STREAMS) < 0.5 else 0
        if hot > 0 and fraction(block, _KEYS) < hot:
            keys[count] = largest_key
        else:
            keys[count] = _draw_key(block, largest_key, b)
        count += 1
    return count


@compiled
def _draw_key(block: Block, largest_key: int, b: float) -> int:
    """A key of the b-model: halves of the range, the lower and larger one with probability b."""
    low, width = 0, largest_key + 1
    while width > 1:
        larger = (width + 1) >> 1
        if fraction(block, _KEYS) < b:
            width = larger
        else:
            low += larger
            width -= larger
    return low
