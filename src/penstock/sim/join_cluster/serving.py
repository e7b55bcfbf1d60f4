"""The inner loop: a worker joins blocks of tuples until it has none left or its time is up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled
from penstock.sim.join_cluster.arriving import GroupLogs

COMPARISON_S, TUPLE_S, RESULT_S, BLOCK, WINDOW_S, PRICES = range(6)
"""What a price list holds."""

CPU_S, RESULTS, DELAY_S, LONGEST_S, COMPARISONS, TALLIES = range(6)
"""What is added up while blocks are joined."""


class GroupState(NamedTuple):
    """How far each group is: positions in its log, and what its windows hold.

    The window is from ``heads`` to ``done``, what its worker has yet to join up to ``sent``, what
    still lies at the master up to ``arrived``. ``buckets`` says which mini-partition a cell belongs
    to, known by its first cell, and ``sizes`` how many tuples of each stream one holds.
    """

    heads: Ints
    done: Ints
    sent: Ints
    arrived: Ints
    cells: npt.NDArray[np.int32]
    buckets: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int32]
    cpu_s: Floats


@compiled
def serve(
    logs: GroupLogs, state: GroupState, counts: npt.NDArray[np.uint16], prices: Floats,
    groups: Ints, cursor: int, now: float, until: float, speed: float, tally: Floats,
) -> tuple[float, int]:  # fmt: skip
    """Joins a worker's pending blocks, group by group in turn, while ``now`` is before ``until``.

    When it is free again, and whose turn it is then. A block that has begun is finished.
    """
    idle_groups = 0
    while len(groups) and idle_groups < len(groups) and now < until:
        cursor = (cursor + 1) % len(groups)
        group = groups[cursor]
        if state.done[group] == state.sent[group]:
            idle_groups += 1
            continue
        idle_groups = 0
        took_s = _join_block(logs, state, counts, prices, group, now, speed, tally)
        state.cpu_s[group] += took_s
        now += took_s
    return now, cursor


@compiled
def _join_block(
    logs: GroupLogs, state: GroupState, counts: npt.NDArray[np.uint16], prices: Floats,
    group: int, now: float, speed: float, tally: Floats,
) -> float:  # fmt: skip
    """Joins the next block of a group with the opposite windows; the time it takes."""
    first = state.done[group]
    stop = min(first + int(prices[BLOCK]), state.sent[group])
    compared, found, born = 0, 0, 0.0
    for at in range(first, stop):
        _expire(logs, state, counts, group, logs.times[at] - prices[WINDOW_S])
        stream, key, cell = logs.streams[at], logs.keys[at], logs.cells[at]
        bucket = state.buckets[group, cell]
        compared += state.sizes[group, 1 - stream, bucket]
        partners = int(counts[1 - stream, key])
        found += partners
        born += partners * logs.times[at]
        counts[stream, key] += 1
        state.sizes[group, stream, bucket] += 1
        state.cells[group, stream, cell] += 1
        state.done[group] = at + 1
    work_s = (
        (stop - first) * prices[TUPLE_S]
        + compared * prices[COMPARISON_S]
        + found * prices[RESULT_S]
    )
    took_s: float = work_s / speed
    tally[CPU_S] += took_s
    tally[RESULTS] += found
    tally[DELAY_S] += found * (now + took_s) - born
    tally[COMPARISONS] += compared
    tally[LONGEST_S] = max(tally[LONGEST_S], now + took_s - logs.times[first])
    return took_s


@compiled
def _expire(
    logs: GroupLogs, state: GroupState, counts: npt.NDArray[np.uint16], group: int, before: float
) -> None:
    """Lets tuples leave the windows that are older than ``before``."""
    head = state.heads[group]
    while head < state.done[group] and logs.times[head] < before:
        stream, cell = logs.streams[head], logs.cells[head]
        counts[stream, logs.keys[head]] -= 1
        state.sizes[group, stream, state.buckets[group, cell]] -= 1
        state.cells[group, stream, cell] -= 1
        head += 1
    state.heads[group] = head


@compiled
def arrive(logs: GroupLogs, state: GroupState, groups: Ints, now: float) -> int:
    """Notes which tuples of some groups have arrived by now; how many lie at the master."""
    waiting = 0
    for group in groups:
        at = state.arrived[group]
        end = logs.starts[group + 1]
        while at < end and logs.times[at] <= now:
            at += 1
        state.arrived[group] = at
        waiting += at - state.sent[group]
    return waiting
