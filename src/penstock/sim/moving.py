"""Hand-over of operators in the simulated system."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import InputError
from penstock.load.compiled import compiled
from penstock.sim.block import (
    COLLECTED,
    DISCIPLINE,
    HELD,
    IS_SUSPENDED,
    LENGTH,
    LIST_WORDS,
    NEXT_READY,
    NODE,
    NONE,
    QUEUE,
    READY,
    ROUND_ROBIN,
    SINCE,
    WAITING,
    WINDOW,
    Block,
)
from penstock.sim.queueing import make_ready, wait
from penstock.sim.tuples import pop, sift


@dataclass(frozen=True)
class HandOverTimes:
    """How long operators stand still when they move together from one node to another.

    ``base_s`` for the two nodes to talk, ``operator_s`` for each operator, and ``state_s`` for each
    tuple it remembers. The first two are what the source's prototype took; the third it gives only
    as a line that grows with the state.

    >>> HandOverTimes().duration_s(operators=3, state=0)
    0.3
    """

    base_s: float = 0.06
    operator_s: float = 0.08
    state_s: float = 0.0001

    def __post_init__(self) -> None:
        if not min(self.base_s, self.operator_s, self.state_s) >= 0:
            raise InputError(
                f"a hand-over of {self.base_s:g} s + {self.operator_s:g} s per operator "
                f"+ {self.state_s:g} s per remembered tuple",
                hint="Give zero or more.",
            )

    def duration_s(self, operators: int, state: int) -> float:
        """The time for so many operators that remember so many tuples together."""
        return self.base_s + self.operator_s * operators + self.state_s * state


@compiled
def suspend(block: Block, operator: int) -> int:
    """Stops an operator: what waits for it and what arrives is held. Gives the size of its state.

    A tuple that is being processed is finished first, where it is.
    """
    block.whole[operator + IS_SUSPENDED] = 1
    node = block.whole[operator + NODE]
    if block.whole[node + DISCIPLINE] == ROUND_ROBIN:
        if block.whole[operator + WAITING + LENGTH] > 0:
            _unready(block, node, operator)
        sift(block, operator + WAITING, operator, operator + HELD)
    else:
        sift(block, node + QUEUE, operator, operator + HELD)
    left, right = operator + WINDOW, operator + WINDOW + LIST_WORDS
    in_windows = block.whole[left + LENGTH] + block.whole[right + LENGTH]
    return int(in_windows + block.whole[operator + COLLECTED])


@compiled
def resume(block: Block, operator: int, node: int) -> None:
    """Starts a suspended operator on a node, where what was held for it now waits."""
    block.whole[operator + NODE] = node
    block.whole[operator + IS_SUSPENDED] = 0
    while block.whole[operator + HELD + LENGTH] > 0:
        wait(block, operator, pop(block, operator + HELD))


@compiled
def _unready(block: Block, node: int, operator: int) -> None:
    """Takes an operator out of a round-robin node's turns."""
    ready = block.whole[node + READY]
    block.whole[node + READY] = NONE
    while ready != NONE:
        following = block.whole[ready + NEXT_READY]
        if ready != operator:
            since = block.whole[ready + SINCE]
            make_ready(block, node, ready)
            block.whole[ready + SINCE] = since
        ready = following
