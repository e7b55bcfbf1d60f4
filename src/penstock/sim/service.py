"""What operators do with a tuple: how long it takes and how many tuples come of it."""

from __future__ import annotations

import math

from penstock.load.compiled import compiled
from penstock.sim.block import (
    BORN,
    COLLECT,
    COLLECTED,
    COST_S,
    CREDIT,
    DRAWS,
    HEAD,
    IS_RANDOM_CHOICE,
    IS_RANDOM_COST,
    JOIN,
    KIND,
    LAST_BORN,
    LAST_WORK,
    LENGTH,
    LIST_WORDS,
    PORT,
    SELECTIVITY,
    TARGET,
    WINDOW,
    WINDOW_END,
    WINDOW_S,
    WORK,
    Block,
)
from penstock.sim.random import exponential, fraction
from penstock.sim.tuples import append, free, new_tuple, pop


@compiled
def begin_work(block: Block, place: int) -> tuple[float, int]:
    """Processor seconds for a tuple on a node of speed 1, and the number of tuples that come of it.

    A join looks through the other side's window and keeps the tuple in its own; a window collects
    and sends on what it has when the first tuple after its end comes.
    """
    operator = block.whole[place + TARGET]
    cost = block.real[operator + COST_S]
    if block.whole[operator + IS_RANDOM_COST]:
        cost *= exponential(block, operator + DRAWS)
    kind = block.whole[operator + KIND]
    if kind == JOIN:
        met = _meet(block, operator, place)
        return float(cost * met), _passed(block, operator, met)
    if kind == COLLECT:
        return float(cost), _collect(block, operator, place)
    return float(cost), _passed(block, operator, 1)


@compiled
def _passed(block: Block, operator: int, count: int) -> int:
    """How many tuples come of ``count``: by chance, or exactly on average."""
    expected = block.real[operator + SELECTIVITY] * count
    if block.whole[operator + IS_RANDOM_CHOICE]:
        whole = math.floor(expected)
        if expected > whole and fraction(block, operator + DRAWS) < expected - whole:
            whole += 1
        return int(whole)
    credit = block.real[operator + CREDIT] + expected
    # A sum of tenths must reach the whole number it stands for.
    whole = math.floor(credit + 1e-9)
    block.real[operator + CREDIT] = credit - whole
    return int(whole)


@compiled
def _meet(block: Block, operator: int, place: int) -> int:
    """The tuples of the other side within half a window before this one, which joins its own.

    Tuples meet when they are at most half the window apart: over both sides that makes
    window x rate x rate pairs a second.
    """
    port = block.whole[place + PORT]
    born = block.real[place + BORN]
    oldest = born - block.real[operator + WINDOW_S] / 2
    for side in range(2):
        window = operator + WINDOW + side * LIST_WORDS
        while (
            block.whole[window + LENGTH] > 0
            and block.real[block.whole[window + HEAD] + BORN] < oldest
        ):
            free(block, pop(block, window))
    mine = operator + WINDOW + port * LIST_WORDS
    other = operator + WINDOW + (1 - port) * LIST_WORDS
    append(block, mine, new_tuple(block, operator, port, born, 0.0))
    return int(block.whole[other + LENGTH])


@compiled
def _collect(block: Block, operator: int, place: int) -> int:
    """What an earlier window sends on now that a tuple of a later one has come."""
    born = block.real[place + BORN]
    sent = 0
    if born >= block.real[operator + WINDOW_END]:
        if block.whole[operator + COLLECTED] > 0:
            sent = _passed(block, operator, block.whole[operator + COLLECTED])
        length = block.real[operator + WINDOW_S]
        block.real[operator + WINDOW_END] = (math.floor(born / length) + 1) * length
        block.whole[operator + COLLECTED] = 0
    if sent == 0:
        remember(block, operator, place)
    block.whole[operator + COLLECTED] += 1
    return sent


@compiled
def remember(block: Block, operator: int, place: int) -> None:
    """Makes a tuple the latest of its operator's window: results are as old as that one."""
    block.real[operator + LAST_BORN] = block.real[place + BORN]
    block.real[operator + LAST_WORK] = block.real[place + WORK]
