"""The event loop."""

from __future__ import annotations

import math

from penstock.load.compiled import compiled
from penstock.sim.block import (
    AFTER,
    ARRIVED,
    BIN_COUNT,
    BINS,
    BINS_PER_OCTAVE,
    BORN,
    BORN_AFTER_S,
    BYTES_PER_S,
    COLLECT,
    DELAY_S,
    DUE,
    DUE_RANK,
    EVENTS,
    FREE_COUNT,
    HEAD,
    IS_REMOTE,
    KIND,
    LAST_BORN,
    LAST_WORK,
    LATENCY_S,
    LATENCY_SQUARED,
    LENGTH,
    LINK,
    LINK_SLOT,
    LOG,
    LOG_ROOM,
    LOG_SIZE,
    LOG_WORDS,
    LONGEST_S,
    NODE,
    NONE,
    NOW,
    OUTPUTS,
    OWNER,
    RANK,
    READER_WORDS,
    READERS,
    READERS_END,
    RESULTS,
    SENDS_UNTIL,
    SENT,
    SERVING,
    SHORTEST_S,
    SINK_LATENCY_S,
    SINK_RESULTS,
    SOURCE_READERS,
    SOURCE_READERS_END,
    SOURCE_SLOT,
    TARGET,
    TIME,
    TUPLE_BYTES,
    WORK,
    WORK_S,
    Block,
)
from penstock.sim.clock import (
    ARRIVAL,
    COMPLETION,
    DELIVERY,
    NEVER,
    PRIORITY_BITS,
    next_slot,
    ranked,
    set_slot,
)
from penstock.sim.queueing import enqueue, serve
from penstock.sim.service import remember
from penstock.sim.sources import next_arrival
from penstock.sim.tuples import append, free, new_tuple, pop

DONE, FULL, REFILL, LOG_FULL = range(4)
# A join that begins may keep a tuple in its window.
_SPARE = 2


@compiled
def run(block: Block, until: float) -> tuple[int, int]:
    """Lets events happen up to and including ``until``.

    Gives why it stopped, and with REFILL the source whose recorded times are used up. Nothing is
    lost by a stop: calling again goes on.
    """
    while True:
        slot = next_slot(block)
        time = block.real[slot + TIME]
        if time > until or time == NEVER:
            break
        kind = block.whole[slot + RANK] >> PRIORITY_BITS
        owner = block.whole[slot + OWNER]
        if _room(block, kind, owner) > block.whole[FREE_COUNT]:
            return FULL, 0
        if block.whole[LOG_ROOM] > 0 and not _note(block, time, kind, owner):
            return LOG_FULL, 0
        block.real[NOW] = time
        block.whole[EVENTS] += 1
        if kind == COMPLETION:
            _complete(block, owner)
        elif kind == DELIVERY:
            _deliver(block, owner)
        elif not _arrive(block, owner):
            return REFILL, owner
    if until < math.inf:
        block.real[NOW] = max(block.real[NOW], until)
    return DONE, 0


@compiled
def _room(block: Block, kind: int, owner: int) -> int:
    """The most places an event can take."""
    if kind == ARRIVAL:
        words = block.whole[owner + SOURCE_READERS_END] - block.whole[owner + SOURCE_READERS]
        return int(words // READER_WORDS * 2 + _SPARE)
    if kind == DELIVERY:
        return _SPARE
    operator = block.whole[block.whole[owner + SERVING] + TARGET]
    words = block.whole[operator + READERS_END] - block.whole[operator + READERS]
    return int(block.whole[owner + OUTPUTS] * words + _SPARE)


@compiled
def _note(block: Block, time: float, kind: int, owner: int) -> bool:
    """Writes an event down; False if there is no room."""
    size = block.whole[LOG_SIZE]
    if size == block.whole[LOG_ROOM]:
        return False
    line = block.whole[LOG] + LOG_WORDS * size
    block.real[line] = time
    block.whole[line + 1] = (kind << PRIORITY_BITS) + owner
    block.whole[LOG_SIZE] = size + 1
    return True


@compiled
def _arrive(block: Block, source: int) -> bool:
    """A tuple arrives; False if the source has to be given more times."""
    block.whole[source + ARRIVED] += 1
    first = block.whole[source + SOURCE_READERS]
    for reader in range(first, block.whole[source + SOURCE_READERS_END], READER_WORDS):
        operator, port = block.whole[reader], block.whole[reader + 1]
        enqueue(block, new_tuple(block, operator, port, block.real[NOW], 0.0))
    return plan_arrival(block, source)


@compiled
def plan_arrival(block: Block, source: int) -> bool:
    """Schedules a source's next arrival; False if its recorded times are used up."""
    time = next_arrival(block, source, block.real[NOW])
    is_known = time >= 0
    rank = ranked(block, ARRIVAL)
    set_slot(block, block.whole[source + SOURCE_SLOT], time if is_known else NEVER, rank)
    return is_known


@compiled
def _complete(block: Block, node: int) -> None:
    """A tuple is processed: what comes of it goes on, and the next one begins."""
    place = block.whole[node + SERVING]
    operator = block.whole[place + TARGET]
    outputs = block.whole[node + OUTPUTS]
    born, work = block.real[place + BORN], block.real[place + WORK]
    if block.whole[operator + KIND] == COLLECT and outputs > 0:
        born, work = block.real[operator + LAST_BORN], block.real[operator + LAST_WORK]
        remember(block, operator, place)
    free(block, place)
    block.whole[node + SERVING] = NONE
    block.whole[operator + SENT] += outputs
    first, end = block.whole[operator + READERS], block.whole[operator + READERS_END]
    for _ in range(outputs):
        if first == end:
            _count_result(block, operator, born, work)
        for reader in range(first, end, READER_WORDS):
            to, port = block.whole[reader], block.whole[reader + 1]
            _forward(block, node, operator, new_tuple(block, to, port, born, work))
    # A reader on the same node may have made it begin already.
    if block.whole[node + SERVING] == NONE:
        serve(block, node)


@compiled
def _forward(block: Block, node: int, operator: int, place: int) -> None:
    """Sends a tuple on: at once on the same node or without a network, else by the node's link."""
    is_remote = block.whole[block.whole[place + TARGET] + NODE] != node
    block.whole[place + IS_REMOTE] = is_remote
    bytes_per_s = block.real[node + BYTES_PER_S]
    if not is_remote or (block.real[DELAY_S] == 0 and bytes_per_s == math.inf):
        enqueue(block, place)
        return
    start = max(block.real[NOW], block.real[node + SENDS_UNTIL])
    sent = start + block.real[operator + TUPLE_BYTES] / bytes_per_s
    block.real[node + SENDS_UNTIL] = sent
    block.real[place + DUE] = sent + block.real[DELAY_S]
    block.whole[place + DUE_RANK] = ranked(block, DELIVERY)
    append(block, node + LINK, place)
    if block.whole[node + LINK + LENGTH] == 1:
        _plan_delivery(block, node)


@compiled
def _plan_delivery(block: Block, node: int) -> None:
    """Schedules a link's next delivery: tuples arrive in the order in which they were sent."""
    number = block.whole[node + LINK_SLOT]
    if block.whole[node + LINK + LENGTH] == 0:
        set_slot(block, number, NEVER, 0)
        return
    place = block.whole[node + LINK + HEAD]
    set_slot(block, number, block.real[place + DUE], block.whole[place + DUE_RANK])


@compiled
def _deliver(block: Block, node: int) -> None:
    """A tuple comes off a link."""
    place = pop(block, node + LINK)
    _plan_delivery(block, node)
    block.whole[place + AFTER] = NONE
    enqueue(block, place)


@compiled
def _count_result(block: Block, operator: int, born: float, work: float) -> None:
    """A tuple leaves the system."""
    if born < block.real[BORN_AFTER_S]:
        return
    latency = block.real[NOW] - born
    block.real[RESULTS] += 1
    block.real[LATENCY_S] += latency
    block.real[LATENCY_SQUARED] += latency * latency
    block.real[WORK_S] += work
    block.real[LONGEST_S] = max(block.real[LONGEST_S], latency)
    block.real[operator + SINK_RESULTS] += 1
    block.real[operator + SINK_LATENCY_S] += latency
    octaves = math.log2(max(latency, SHORTEST_S) / SHORTEST_S)
    at = min(BIN_COUNT - 1, int(octaves * BINS_PER_OCTAVE))
    block.whole[block.whole[BINS] + at] += 1
