"""Tuples wait and nodes serve them: first come first served, or operators in turn."""

from __future__ import annotations

from penstock.load.compiled import compiled
from penstock.sim.block import (
    BUSY_S,
    DISCIPLINE,
    HELD,
    IS_REMOTE,
    IS_SUSPENDED,
    LAST_READY,
    LENGTH,
    NEXT_READY,
    NODE,
    NODE_BUSY_S,
    NODE_SLOT,
    NONE,
    NOW,
    OUTPUTS,
    QUEUE,
    READER_WORDS,
    READERS,
    READERS_END,
    READY,
    ROUND_ROBIN,
    SERVING,
    SINCE,
    SPEED,
    TAKEN,
    TARGET,
    TRANSFER_COST_S,
    TURN,
    WAITING,
    WORK,
    Block,
)
from penstock.sim.clock import COMPLETION, NEVER, ranked, set_slot
from penstock.sim.service import begin_work
from penstock.sim.tuples import append, pop


@compiled
def enqueue(block: Block, place: int) -> None:
    """A tuple has reached its operator: it is held, waits, or is processed if nothing else is."""
    operator = block.whole[place + TARGET]
    block.whole[operator + TAKEN] += 1
    if block.whole[operator + IS_SUSPENDED]:
        append(block, operator + HELD, place)
    else:
        wait(block, operator, place)


@compiled
def wait(block: Block, operator: int, place: int) -> None:
    """Puts a tuple into the queue of its operator's node."""
    node = block.whole[operator + NODE]
    if block.whole[node + DISCIPLINE] == ROUND_ROBIN:
        append(block, operator + WAITING, place)
        if block.whole[operator + WAITING + LENGTH] == 1:
            make_ready(block, node, operator)
    else:
        append(block, node + QUEUE, place)
    if block.whole[node + SERVING] == NONE:
        serve(block, node)


@compiled
def make_ready(block: Block, node: int, operator: int) -> None:
    """Gives an operator the last turn of a round-robin node."""
    block.whole[operator + NEXT_READY] = NONE
    block.whole[operator + SINCE] = 0
    if block.whole[node + READY] == NONE:
        block.whole[node + READY] = operator
    else:
        block.whole[block.whole[node + LAST_READY] + NEXT_READY] = operator
    block.whole[node + LAST_READY] = operator


@compiled
def _next_place(block: Block, node: int) -> int:
    """The tuple whose turn it is, or NONE."""
    if block.whole[node + DISCIPLINE] != ROUND_ROBIN:
        return pop(block, node + QUEUE) if block.whole[node + QUEUE + LENGTH] > 0 else NONE
    operator = block.whole[node + READY]
    if operator == NONE:
        return NONE
    place = pop(block, operator + WAITING)
    block.whole[operator + SINCE] += 1
    is_empty = block.whole[operator + WAITING + LENGTH] == 0
    if is_empty or block.whole[operator + SINCE] >= block.whole[TURN]:
        block.whole[node + READY] = block.whole[operator + NEXT_READY]
        if not is_empty:
            make_ready(block, node, operator)
    return place


@compiled
def serve(block: Block, node: int) -> None:
    """Begins the next tuple of an idle node, if there is one."""
    place = _next_place(block, node)
    block.whole[node + SERVING] = place
    if place == NONE:
        set_slot(block, block.whole[node + NODE_SLOT], NEVER, 0)
        return
    operator = block.whole[place + TARGET]
    work_s, outputs = begin_work(block, place)
    if block.real[TRANSFER_COST_S] > 0:
        remote = _remote_readers(block, node, operator) * outputs + block.whole[place + IS_REMOTE]
        work_s += block.real[TRANSFER_COST_S] / 2 * remote
    took_s = work_s / block.real[node + SPEED]
    block.whole[node + OUTPUTS] = outputs
    block.real[place + WORK] += took_s
    block.real[operator + BUSY_S] += work_s
    block.real[node + NODE_BUSY_S] += took_s
    rank = ranked(block, COMPLETION)
    set_slot(block, block.whole[node + NODE_SLOT], block.real[NOW] + took_s, rank)


@compiled
def _remote_readers(block: Block, node: int, operator: int) -> int:
    """The readers of an operator on other nodes."""
    remote = 0
    first, end = block.whole[operator + READERS], block.whole[operator + READERS_END]
    for reader in range(first, end, READER_WORDS):
        if block.whole[block.whole[reader] + NODE] != node:
            remote += 1
    return remote
