"""Sizes among nodes that are not alike: each node reckons in percent of itself.

On their way, sizes are in percent of the node that owns the operators, who has measured them. Who
takes them, or asks for them, converts: what it hears into percent of itself, what it says into
percent of the owner. Nodes that are alike say and hear the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.balance.hierarchy.messages import MessageType, NegotiationMessage
from penstock.balance.hierarchy.settings import Utilisation

_FROM_OWNER = (
    MessageType.OFFER_REQUEST,
    MessageType.OFFER_TRANSFER_REQUEST,
    MessageType.DEMAND_REPLY,
    MessageType.DEMAND_TRANSFER_REPLY,
)
_FROM_TAKER = (
    MessageType.OFFER_REPLY,
    MessageType.OFFER_TRANSFER_REPLY,
    MessageType.DEMAND_REQUEST,
    MessageType.DEMAND_TRANSFER_REQUEST,
)
_SENT_DIGITS, _HEARD_DIGITS = 6, 12
SIZE_DIGITS = 4
"""Owners measure sizes to so many digits: coarser than what is sent, so that the size an owner gets
back is the very one that it has said, however often it was converted."""


@dataclass(frozen=True)
class Capacity:
    """What a node has, in any units that are the same for all nodes."""

    cpu: float = 1.0
    memory: float = 1.0


def scale_between(owner: Capacity, taker: Capacity, what: Utilisation) -> float:
    """How many percent of the taker one percent of the owner is.

    Where the larger of both counts it is the larger scale: nothing takes more of the taker than it
    was told.

    >>> scale_between(Capacity(2, 8), Capacity(4, 4), Utilisation.CPU)
    0.5
    >>> scale_between(Capacity(2, 8), Capacity(4, 4), Utilisation.MAX)
    2.0
    """
    cpu, memory = owner.cpu / taker.cpu, owner.memory / taker.memory
    return {Utilisation.CPU: cpu, Utilisation.MEMORY: memory}.get(what, max(cpu, memory))


def as_sent(
    message: NegotiationMessage, own: Capacity, peer: Capacity, what: Utilisation
) -> NegotiationMessage:
    """What a node says, in percent of the owner."""
    if message.type not in _FROM_TAKER:
        return message
    return _scaled(message, 1 / scale_between(peer, own, what), _SENT_DIGITS)


def as_heard(
    message: NegotiationMessage, own: Capacity, peer: Capacity, what: Utilisation
) -> NegotiationMessage:
    """What a node has been told, in percent of itself."""
    if message.type not in _FROM_OWNER:
        return message
    return _scaled(message, scale_between(peer, own, what), _HEARD_DIGITS)


def _scaled(message: NegotiationMessage, scale: float, digits: int) -> NegotiationMessage:
    if scale == 1:
        return message
    portions = tuple(
        replace(portion, size=round(portion.size * scale, digits)) for portion in message.transfers
    )
    return replace(message, size=round(message.size * scale, digits), transfers=portions)
