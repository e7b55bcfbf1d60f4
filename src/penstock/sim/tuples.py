"""Tuples under way: places in the block, lists linked through them, and a list of free places.

Memory is as large as the most tuples that were ever under way at once, however long a simulation
runs. Taking from the front of a list and adding to its back are constant time.
"""

from __future__ import annotations

from penstock.load.compiled import compiled
from penstock.sim.block import (
    AFTER,
    BORN,
    FREE,
    FREE_COUNT,
    HEAD,
    IS_REMOTE,
    LENGTH,
    NONE,
    PORT,
    TAIL,
    TARGET,
    WORK,
    Block,
)


@compiled
def new_tuple(block: Block, operator: int, port: int, born: float, work: float) -> int:
    """A new tuple for an operator; there must be a free place."""
    place = block.whole[FREE]
    block.whole[FREE] = block.whole[place + AFTER]
    block.whole[FREE_COUNT] -= 1
    block.whole[place + TARGET] = operator
    block.whole[place + PORT] = port
    block.real[place + BORN] = born
    block.real[place + WORK] = work
    block.whole[place + IS_REMOTE] = 0
    return int(place)


@compiled
def free(block: Block, place: int) -> None:
    """Gives a place back."""
    block.whole[place + AFTER] = block.whole[FREE]
    block.whole[FREE] = place
    block.whole[FREE_COUNT] += 1


@compiled
def append(block: Block, list_: int, place: int) -> None:
    """Adds a tuple at the end of a list."""
    block.whole[place + AFTER] = NONE
    if block.whole[list_ + LENGTH] == 0:
        block.whole[list_ + HEAD] = place
    else:
        block.whole[block.whole[list_ + TAIL] + AFTER] = place
    block.whole[list_ + TAIL] = place
    block.whole[list_ + LENGTH] += 1


@compiled
def pop(block: Block, list_: int) -> int:
    """Takes the first tuple off a list that has one."""
    place = block.whole[list_ + HEAD]
    block.whole[list_ + HEAD] = block.whole[place + AFTER]
    block.whole[list_ + LENGTH] -= 1
    return int(place)


@compiled
def sift(block: Block, list_: int, operator: int, other: int) -> None:
    """Moves an operator's tuples from one list to the end of another, in order."""
    left = block.whole[list_ + LENGTH]
    place = block.whole[list_ + HEAD]
    block.whole[list_ + LENGTH] = 0
    for _ in range(left):
        following = block.whole[place + AFTER]
        append(block, other if block.whole[place + TARGET] == operator else list_, place)
        place = following
