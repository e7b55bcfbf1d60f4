"""A tree of negotiating nodes as arrays, for the compiled simulation."""

from __future__ import annotations

from typing import NamedTuple

from penstock.load.arrays import Floats, Ints

FREE, ASKS_OFFER, ASKS_DEMAND, SETTLES_OFFER, SETTLES_DEMAND, ANSWERS = range(6)
(
    OFFER_REQUEST, OFFER_REPLY, OFFER_TRANSFER_REQUEST, OFFER_TRANSFER_REPLY,
    DEMAND_REQUEST, DEMAND_REPLY, DEMAND_TRANSFER_REQUEST, DEMAND_TRANSFER_REPLY,
    CLEAR, BUSY,
) = range(10)  # fmt: skip
MESSAGES, STEPS, MOVED, FAILED = range(4)
"""What is counted: the last is not zero if room for messages ran out."""


class TreeShape(NamedTuple):
    """What never changes: nodes, and who reads whom. Lists of lists are (starts, members)."""

    parents: Ints
    neighbour_starts: Ints
    neighbours: Ints
    firsts: Ints
    input_starts: Ints
    inputs: Ints
    reader_starts: Ints
    readers: Ints


class Rules(NamedTuple):
    """The settings as numbers."""

    lower: float
    upper: float
    period_s: float
    limit: float
    rest_s: float
    delay_s: float
    wide: bool
    largest_first: bool
    relay: bool


class Nodes(NamedTuple):
    """What a node knows, a row each."""

    roles: Ints
    partners: Ints
    waiting: Ints
    met_busy: Ints
    pressed: Ints
    relayed: Ints
    reply_counts: Ints
    replies: Ints
    next_check_s: Floats
    draws: Floats
    drawn: Ints


class Operators(NamedTuple):
    """Where operators are: a doubly linked list for every node, in the order of arrival."""

    sizes: Floats
    on: Ints
    following: Ints
    preceding: Ints
    heads: Ints
    tails: Ints
    rest_until_s: Floats
    marks: Ints
    closure: Ints


class Mail(NamedTuple):
    """Messages under way, in rings: all take equally long, so the first sent is the first there."""

    arrives_s: Floats
    kinds: Ints
    senders: Ints
    receivers: Ints
    urgent: Ints
    sizes: Floats
    starts: Ints
    counts: Ints
    codes: Ints
    portions: Floats
    ends: Ints


class Scratch(NamedTuple):
    """Room to work in."""

    codes: Ints
    sizes: Floats
    chosen: Ints
    chosen_sizes: Floats
    counts: Ints


class Checks(NamedTuple):
    """A heap of nodes by the time of their next check."""

    heap: Ints
    places: Ints
