"""Choosing among transfers: what a node offers, accepts, can spare, and gives in the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.balance.hierarchy.messages import NegotiationMessage, Portion, Urgency
from penstock.balance.hierarchy.settings import HierarchySettings
from penstock.balance.hierarchy.state import NegotiatingNode
from penstock.balance.hierarchy.transfers import size_of


def choose_fitting(
    portions: Iterable[Portion], room: float, taken: Iterable[str] = ()
) -> tuple[Portion, ...]:
    """Those that fit into ``room``: greedily, in the order given, and no operator twice.

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


def find_free(
    settings: HierarchySettings, node: NegotiatingNode, peer: str, most: float, now_s: float
) -> tuple[Portion, ...]:
    """What may move to a neighbour now: not too large, not resting."""
    return settings.sort(
        portion
        for portion in node.view.portions(peer)
        if 0 < portion.size <= most and not node.is_resting(portion, now_s)
    )


def choose_acceptable(
    settings: HierarchySettings, node: NegotiatingNode, message: NegotiationMessage
) -> tuple[Urgency, tuple[Portion, ...]]:
    """What of an offer a node takes, and how much it wants it."""
    used = node.view.utilisation
    if used > settings.upper:
        return Urgency.UNSET, ()
    urgency = Urgency.HIGH if used <= settings.lower else Urgency.NORMAL
    room = settings.room(used, is_relay=message.urgent is Urgency.NORMAL)
    # A request that comes late or twice may be about what this node has by now.
    return urgency, choose_fitting(message.transfers, room, taken=node.view.sizes)


def choose_spare(
    settings: HierarchySettings, node: NegotiatingNode, message: NegotiationMessage, now_s: float
) -> tuple[Urgency, tuple[Portion, ...]]:
    """What a node could give to one that asks, and how much it wants to."""
    used = node.view.utilisation
    if used <= settings.target:
        return Urgency.UNSET, ()
    most = min(message.size, round(used - settings.target, 9))
    urgency = Urgency.HIGH if used >= settings.upper else Urgency.NORMAL
    return urgency, find_free(settings, node, message.sender, most, now_s)


def choose_given(
    settings: HierarchySettings,
    node: NegotiatingNode,
    peer: str,
    portions: Iterable[Portion],
    on_its_way: float,
    now_s: float,
) -> tuple[Portion, ...]:
    """What an owner gives now: what is still as agreed, and leaves it at its target."""
    spare = round(node.view.utilisation - on_its_way - settings.target, 9)
    return choose_fitting(keep_free(node, peer, portions, now_s), spare)
