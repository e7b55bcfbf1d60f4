"""The next arrival of every source: rates that change by themselves, and recorded times."""

from __future__ import annotations

import math

from penstock.load.compiled import compiled
from penstock.sim.arrivals import Alternating, Arrivals, OnOff, Recorded, Steady
from penstock.sim.block import (
    ACTIVE_S,
    ALTERNATING,
    BUFFER,
    FACTOR,
    FILLED,
    HIGH,
    IS_ACTIVE,
    IS_EVEN,
    LOW,
    ON_OFF,
    PASSIVE_S,
    POSITION,
    RECORDED,
    RHYTHM,
    SOURCE_DRAWS,
    SOURCE_KIND,
    UNTIL,
    Block,
)
from penstock.sim.random import exponential, streams_of

USED_UP = -1.0


def describe_source(block: Block, source: int, arrivals: Arrivals, seed: int) -> None:
    """Fills the record of a source for time 0."""
    block.real[source + FACTOR] = 1.0
    block.real[source + UNTIL] = math.inf
    block.whole[source + IS_ACTIVE] = 1
    if isinstance(arrivals, Recorded):
        block.whole[source + SOURCE_KIND] = RECORDED
        return
    block.whole[source + IS_EVEN] = arrivals.periodic
    if isinstance(arrivals, Steady):
        block.real[source + HIGH] = arrivals.rate_per_s
    elif isinstance(arrivals, Alternating):
        _alternate(block, source, arrivals)
    else:
        _burst(block, source, arrivals, seed)


def _alternate(block: Block, source: int, arrivals: Alternating) -> None:
    half_s = arrivals.period_s / 2
    into_s = arrivals.offset_s % arrivals.period_s
    is_active = into_s < half_s
    block.whole[source + SOURCE_KIND] = ALTERNATING
    block.real[source + HIGH] = arrivals.high_per_s
    block.real[source + LOW] = arrivals.low_per_s
    block.real[source + ACTIVE_S] = block.real[source + PASSIVE_S] = half_s
    block.whole[source + IS_ACTIVE] = is_active
    block.real[source + UNTIL] = (half_s if is_active else arrivals.period_s) - into_s


def _burst(block: Block, source: int, arrivals: OnOff, seed: int) -> None:
    share = arrivals.active_s / (arrivals.active_s + arrivals.idle_s)
    share = 1 - share if arrivals.opposite else share
    block.whole[source + SOURCE_KIND] = ON_OFF
    block.real[source + (LOW if arrivals.opposite else HIGH)] = arrivals.rate_per_s / share
    block.real[source + ACTIVE_S] = arrivals.active_s
    block.real[source + PASSIVE_S] = arrivals.idle_s
    if arrivals.rhythm is not None:
        block.whole[source + RHYTHM] = streams_of(seed, 3, arrivals.rhythm + 1)[-1]
    # The rhythm began so long ago; it is brought up to time 0.
    block.real[source + UNTIL] = -arrivals.offset_s
    block.whole[source + IS_ACTIVE] = 0
    while block.real[source + UNTIL] <= 0:
        turn_over(block, source)


@compiled
def turn_over(block: Block, source: int) -> None:
    """Begins the next active or passive period."""
    is_active = 1 - block.whole[source + IS_ACTIVE]
    block.whole[source + IS_ACTIVE] = is_active
    length_s = block.real[source + (ACTIVE_S if is_active else PASSIVE_S)]
    if block.whole[source + SOURCE_KIND] == ON_OFF:
        length_s *= exponential(block, source + RHYTHM)
    block.real[source + UNTIL] += length_s


@compiled
def next_arrival(block: Block, source: int, now: float) -> float:
    """When the next tuple arrives after ``now``; USED_UP if there are no more recorded times."""
    if block.whole[source + SOURCE_KIND] == RECORDED:
        position = block.whole[source + POSITION]
        if position == block.whole[source + FILLED]:
            return USED_UP
        block.whole[source + POSITION] = position + 1
        return max(now, float(block.real[block.whole[source + BUFFER] + position]))
    if (block.real[source + HIGH] + block.real[source + LOW]) * block.real[source + FACTOR] <= 0:
        return math.inf
    distance = 1.0 if block.whole[source + IS_EVEN] else exponential(block, source + SOURCE_DRAWS)
    return _after(block, source, now, distance)


@compiled
def _after(block: Block, source: int, now: float, distance: float) -> float:
    """Uses the distance to the next tuple up at the current rate, period by period."""
    time = now
    while True:
        rate = block.real[source + (HIGH if block.whole[source + IS_ACTIVE] else LOW)]
        rate *= block.real[source + FACTOR]
        until = block.real[source + UNTIL]
        if rate > 0:
            arrival = time + distance / rate
            if arrival <= until:
                return float(arrival)
            distance -= rate * (until - time)
        time = until
        turn_over(block, source)
