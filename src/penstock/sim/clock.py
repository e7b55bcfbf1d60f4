"""What happens next: events ordered by (time, priority, sequence).

Every node has one next completion, every link one next delivery, every source one next arrival:
each has a slot, and the earliest slot is kept at the root of a tree of winners. Setting a slot
costs one walk from its leaf to the root. The priority of events at the same time is that of their
kind, then they happen in the order in which they were scheduled.
"""

from __future__ import annotations

import math

from penstock.load.compiled import compiled
from penstock.sim.block import (
    LEAVES,
    RANK,
    SEQUENCE,
    SLOT_WORDS,
    SLOTS,
    TIME,
    TREE,
    Block,
)

COMPLETION, DELIVERY, ARRIVAL = range(3)
PRIORITY_BITS = 56
NEVER = math.inf


@compiled
def ranked(block: Block, priority: int) -> int:
    """The rank of an event that is scheduled now."""
    block.whole[SEQUENCE] += 1
    return int((priority << PRIORITY_BITS) + block.whole[SEQUENCE])


@compiled
def set_slot(block: Block, number: int, time: float, rank: int) -> None:
    """Sets when a slot's next event happens."""
    slots = block.whole[SLOTS]
    tree = block.whole[TREE]
    slot = slots + SLOT_WORDS * number
    block.real[slot + TIME] = time
    block.whole[slot + RANK] = rank
    at = (block.whole[LEAVES] + number) >> 1
    while at > 0:
        left = block.whole[tree + 2 * at]
        right = block.whole[tree + 2 * at + 1]
        winner = right if _is_earlier(block, right, left) else left
        if winner == block.whole[tree + at] and winner != slot:
            return  # it won here before, and further up nothing has changed either
        block.whole[tree + at] = winner
        at >>= 1


@compiled
def _is_earlier(block: Block, slot: int, other: int) -> bool:
    time, other_time = block.real[slot + TIME], block.real[other + TIME]
    if time != other_time:
        return bool(time < other_time)
    return bool(block.whole[slot + RANK] < block.whole[other + RANK])


@compiled
def next_slot(block: Block) -> int:
    """The slot whose event is next."""
    return int(block.whole[block.whole[TREE] + 1])
