"""The memory of a simulated world: one block of words, seen as whole numbers and as reals.

A record is known by the number of its first word, and its fields are small offsets from there:
``block.real[node + SPEED]``. The inner loops hand two arrays around instead of sixty, a reference
is an index that needs no arithmetic, and making room for more tuples is one longer block in which
everything is where it was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.load.arrays import Floats, Ints

NONE = -1


class Block(NamedTuple):
    """The same words twice."""

    whole: Ints
    real: Floats


# The record at word 0: time, counters, and where everything else begins.
(
    NOW,
    SEQUENCE,
    EVENTS,
    FREE,
    FREE_COUNT,
    DELAY_S,
    TRANSFER_COST_S,
    TURN,
    BORN_AFTER_S,
    RESULTS,
    LATENCY_S,
    LATENCY_SQUARED,
    WORK_S,
    LONGEST_S,
    SLOTS,
    TREE,
    LEAVES,
    BINS,
    LOG,
    LOG_ROOM,
    LOG_SIZE,
    HEADER,
) = range(22)

# A slot: when its next event happens, its rank among those at the same time, whose it is.
TIME, RANK, OWNER, SLOT_WORDS = range(4)

# A list of tuples: first, last, how many.
HEAD, TAIL, LENGTH, LIST_WORDS = range(4)

# A tuple under way.
TARGET, PORT, BORN, WORK, IS_REMOTE, DUE, DUE_RANK, AFTER, TUPLE_WORDS = range(9)

# A node: FCFS tuples wait in QUEUE, round-robin operators with tuples from READY to LAST_READY.
(
    NODE_SLOT,
    LINK_SLOT,
    SPEED,
    DISCIPLINE,
    SERVING,
    OUTPUTS,
    SENDS_UNTIL,
    BYTES_PER_S,
    NODE_BUSY_S,
    READY,
    LAST_READY,
    QUEUE,
) = range(12)
LINK = QUEUE + LIST_WORDS
NODE_WORDS = LINK + LIST_WORDS

# An operator; two words each for its readers: operator and port.
(
    KIND,
    COST_S,
    IS_RANDOM_COST,
    SELECTIVITY,
    IS_RANDOM_CHOICE,
    WINDOW_S,
    TUPLE_BYTES,
    READERS,
    READERS_END,
    NODE,
    IS_SUSPENDED,
    CREDIT,
    COLLECTED,
    WINDOW_END,
    LAST_BORN,
    LAST_WORK,
    DRAWS,
    SINCE,
    NEXT_READY,
    TAKEN,
    SENT,
    BUSY_S,
    SINK_RESULTS,
    SINK_LATENCY_S,
    WAITING,
) = range(25)
HELD = WAITING + LIST_WORDS
WINDOW = HELD + LIST_WORDS
OPERATOR_WORDS = WINDOW + 2 * LIST_WORDS

# A source.
(
    SOURCE_SLOT,
    SOURCE_KIND,
    HIGH,
    LOW,
    FACTOR,
    ACTIVE_S,
    PASSIVE_S,
    IS_ACTIVE,
    UNTIL,
    IS_EVEN,
    SOURCE_DRAWS,
    RHYTHM,
    BUFFER,
    POSITION,
    FILLED,
    ARRIVED,
    SOURCE_READERS,
    SOURCE_READERS_END,
    SOURCE_WORDS,
) = range(19)

READER_WORDS = 2
LOG_WORDS = 2

PLAIN, JOIN, COLLECT = range(3)
FCFS, ROUND_ROBIN = range(2)
STEADY, ALTERNATING, ON_OFF, RECORDED = range(4)

BIN_COUNT = 2_048
BINS_PER_OCTAVE = 32
SHORTEST_S = 2.0**-24


def block_of(words: int) -> Block:
    """A block of zeros."""
    whole = np.zeros(words, np.int64)
    return Block(whole, whole.view(np.float64))


def column(words: np.ndarray, first: int, stride: int, count: int, field: int) -> np.ndarray:
    """One field of ``count`` records that lie ``stride`` words apart, as a view."""
    return words[first + field : first + field + stride * count : stride][:count]
