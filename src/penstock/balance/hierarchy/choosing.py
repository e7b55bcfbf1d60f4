"""Choosing among transfers: greedily, in the order given, no operator twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.balance.hierarchy.messages import NegotiationMessage, Portion, Urgency
from penstock.balance.hierarchy.state import NegotiatingNode
from penstock.balance.hierarchy.transfers import size_of


def choose_fitting(
    portions: Iterable[Portion], room: float, taken: Iterable[str] = ()
) -> tuple[Portion, ...]:
    """Those that fit into ``room`` one after the other, and share no operator.

    >>> some = [Portion(("a",), 6), Portion(("a", "b"), 3), Portion(("c",), 5), Portion(("d",), 4)]
    >>> [portion.operators for portion in choose_fitting(some, 10)]
    [('a',), ('d',)]
    """
    found: list[Portion] = []
    used, left = set(taken), room
    for portion in portions:
        if 0 < portion.size <= left and not portion.shares_with(used):
            found.append(portion)
            used.update(portion.operators)
            left = round(left - portion.size, 9)
    return tuple(found)


def sum_sizes(portions: Iterable[Portion]) -> float:
    """What the portions take together."""
    return round(sum(portion.size for portion in portions), 9)


def sort_by_urgency(replies: Sequence[NegotiationMessage]) -> list[NegotiationMessage]:
    """High before all others; as they arrived where that is equal."""
    return sorted(replies, key=lambda reply: reply.urgent is not Urgency.HIGH)


def keep_free(
    node: NegotiatingNode, peer: str, portions: Iterable[Portion], now_s: float
) -> tuple[Portion, ...]:
    """The portions that may still move to a neighbour, with sizes of now.

    One that has grown beyond what was agreed is left out: the neighbour has no room for it.
    """
    free = {transfer.operators for transfer in node.view.transfers if transfer.to == peer}
    found = []
    for portion in portions:
        if portion.operators in free and not node.is_resting(portion, now_s):
            size = size_of(portion.operators, node.view.sizes)
            if size <= portion.size:
                found.append(replace(portion, size=size))
    return tuple(found)
