"""A negotiation of one's own: how it begins, and what is agreed once the replies are in."""

from __future__ import annotations

from dataclasses import replace

from penstock.balance.hierarchy.choosing import (
    choose_fitting,
    keep_free,
    sort_by_urgency,
    sum_sizes,
)
from penstock.balance.hierarchy.composing import write_answer, write_message
from penstock.balance.hierarchy.messages import MessageType, NegotiationId, NegotiationMessage
from penstock.balance.hierarchy.settings import HierarchySettings
from penstock.balance.hierarchy.state import Asking, NegotiatingNode, Settling


def begin_asking(
    settings: HierarchySettings, node: NegotiatingNode, now_s: float, is_offer: bool
) -> NegotiatingNode:
    """The node in a new negotiation, in which no neighbour has answered yet."""
    asking = Asking(
        NegotiationId(node.name, node.incarnation, node.number),
        is_offer,
        frozenset(node.neighbours),
        now_s + settings.answer_s,
        now_s + settings.hold_s,
    )
    return replace(node, number=node.number + 1, negotiation=asking)


def choose_among(
    settings: HierarchySettings, node: NegotiatingNode, asking: Asking, now_s: float
) -> tuple[Settling | None, tuple[NegotiationMessage, ...]]:
    """What is agreed, by the replies there are, and a message to every neighbour.

    The most urgent come first; no operator is agreed on twice, and no more than the node has too
    much or lacks. Without an agreement there is nothing left to settle.
    """
    used, target = node.view.utilisation, settings.target
    left = round(used - target if asking.is_offer else target - used, 9)
    request = (
        MessageType.OFFER_TRANSFER_REQUEST
        if asking.is_offer
        else MessageType.DEMAND_TRANSFER_REQUEST
    )
    taken: set[str] = set()
    agreed, messages = [], []
    for reply in sort_by_urgency(asking.replies):
        portions = reply.transfers
        if asking.is_offer:
            portions = keep_free(node, reply.sender, portions, now_s)
        chosen = choose_fitting(portions, left, taken)
        left = round(left - sum_sizes(chosen), 9)
        taken.update(name for portion in chosen for name in portion.operators)
        if chosen:
            agreed.append((reply.sender, chosen))
        messages.append(write_answer(reply, request if chosen else MessageType.CLEAR, chosen))
    messages += [write_message(node, peer, MessageType.CLEAR) for peer in sorted(asking.waiting)]
    until_s = asking.until_s if asking.is_offer else now_s + settings.hold_s
    settling = Settling(asking.id, asking.is_offer, tuple(agreed), until_s)
    return settling if agreed else None, tuple(messages)
