"""What neighbours tell each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.errors import InputError

MOST_PORTIONS = 10_000
"""More transfers than this are not taken from a message: no node has so many operators."""


class MessageType(StrEnum):
    """The source's types, the owner's confirmation of a demand, and the answer of a busy node."""

    OFFER_REQUEST = "opOfferRequest"
    OFFER_REPLY = "opOfferReply"
    OFFER_TRANSFER_REQUEST = "opOfferTransferRequest"
    OFFER_TRANSFER_REPLY = "opOfferTransferReply"
    DEMAND_REQUEST = "opDemandRequest"
    DEMAND_REPLY = "opDemandReply"
    DEMAND_TRANSFER_REQUEST = "opDemandTransferRequest"
    DEMAND_TRANSFER_REPLY = "opDemandTransferReply"
    CLEAR = "Clear"
    BUSY = "busy"


class Urgency(StrEnum):
    """How much a neighbour wants what it answers."""

    HIGH = "High"
    NORMAL = "Normal"
    UNSET = "Unset"


@dataclass(frozen=True, order=True)
class NegotiationId:
    """Who began a negotiation, in which of its lives, and the how manieth it was."""

    initiator: str
    incarnation: int
    number: int

    def __str__(self) -> str:
        return f"{self.initiator}#{self.incarnation}.{self.number}"


@dataclass(frozen=True)
class Portion:
    """Operators that move together, and what they take of a node, as their owner measured it."""

    operators: tuple[str, ...]
    size: float

    def shares_with(self, operators: Iterable[str]) -> bool:
        return not set(self.operators).isdisjoint(operators)


@dataclass(frozen=True)
class NegotiationMessage:
    """One message from a node to a neighbour.

    >>> NegotiationMessage.of_record(Message := {
    ...     "sender": "a", "receiver": "root", "type": "Clear", "negotiation": ["a", 0, 7],
    ... }).negotiation
    NegotiationId(initiator='a', incarnation=0, number=7)
    """

    sender: str
    receiver: str
    type: MessageType
    negotiation: NegotiationId
    urgent: Urgency = Urgency.UNSET
    size: float = 0.0
    transfers: tuple[Portion, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """The form in which messages travel."""
        name = self.negotiation
        return {
            "sender": self.sender,
            "receiver": self.receiver,
            "type": self.type.value,
            "negotiation": [name.initiator, name.incarnation, name.number],
            "urgent": self.urgent.value,
            "size": self.size,
            "transfers": [[list(portion.operators), portion.size] for portion in self.transfers],
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> NegotiationMessage:
        """The message in a record from outside; raises what is wrong with it."""
        try:
            initiator, incarnation, number = record["negotiation"]
            return cls(
                _name(record["sender"]),
                _name(record["receiver"]),
                MessageType(record["type"]),
                NegotiationId(_name(initiator), _whole(incarnation), _whole(number)),
                Urgency(record.get("urgent", Urgency.UNSET)),
                _size(record.get("size", 0.0)),
                _portions(record.get("transfers", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"this is no message of a negotiation: {type(error).__name__} {error}",
                hint="Both ends have to run the same version.",
            ) from None


def _portions(found: Sequence[Any]) -> tuple[Portion, ...]:
    if not isinstance(found, list | tuple) or len(found) > MOST_PORTIONS:
        raise ValueError(f"at most {MOST_PORTIONS} transfers")
    return tuple(
        Portion(tuple(_name(name) for name in operators), _size(size)) for operators, size in found
    )


def _name(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 1_000:
        raise ValueError(f"no name: {str(value)[:50]!r}")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"no number: {str(value)[:50]!r}")
    return value


def _size(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"no size: {str(value)[:50]!r}")
    return float(value)
