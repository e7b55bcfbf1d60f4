"""What a negotiating node says, and what it asks to have done, put into words."""

from __future__ import annotations

from penstock.balance.hierarchy.choosing import sum_sizes
from penstock.balance.hierarchy.instructions import ChangeOwner, DropPrepared, Instruction
from penstock.balance.hierarchy.messages import (
    MessageType,
    NegotiationId,
    NegotiationMessage,
    Portion,
    Urgency,
)
from penstock.balance.hierarchy.state import Answering, NegotiatingNode


def write_message(
    state: NegotiatingNode, to: str, kind: MessageType, portions: tuple[Portion, ...] = ()
) -> NegotiationMessage:
    """A message of the node's own negotiation."""
    assert state.negotiation is not None
    name = state.negotiation.id
    return NegotiationMessage(
        state.name, to, kind, name, size=sum_sizes(portions), transfers=portions
    )


def write_answer(
    message: NegotiationMessage,
    kind: MessageType,
    portions: tuple[Portion, ...] = (),
    urgency: Urgency = Urgency.UNSET,
) -> NegotiationMessage:
    """An answer to who sent a message, in the same negotiation."""
    return NegotiationMessage(
        message.receiver,
        message.sender,
        kind,
        message.negotiation,
        urgency,
        sum_sizes(portions),
        portions,
    )


def keep_promised(
    message: NegotiationMessage, promised: tuple[Portion, ...]
) -> tuple[Portion, ...]:
    """What of a message was part of the agreement, and is no larger than agreed."""
    sizes = {portion.operators: portion.size for portion in promised}
    return tuple(
        portion
        for portion in message.transfers
        if portion.size <= sizes.get(portion.operators, -1.0)
    )


def ask_for_change(
    state: NegotiatingNode,
    negotiation: NegotiationId,
    peer: str,
    portions: tuple[Portion, ...],
    until_s: float,
) -> ChangeOwner:
    """The step that gives portions to a neighbour, if they still have the epochs of now."""
    epochs = state.view.epochs
    compared = tuple((name, epochs[name]) for portion in portions for name in portion.operators)
    return ChangeOwner(negotiation, state.name, peer, portions, compared, until_s)


def drop_prepared(state: NegotiatingNode, answering: Answering) -> tuple[Instruction, ...]:
    """Undoes preparations for what did not come."""
    left = tuple(name for name in answering.prepared if name not in state.view.sizes)
    return (DropPrepared(answering.id, left),) if left else ()
