"""What a negotiating node wants done, and what it is told besides messages and time."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.balance.hierarchy.messages import NegotiationId, NegotiationMessage, Portion
from penstock.balance.hierarchy.state import LocalView


@dataclass(frozen=True)
class Prepare:
    """Get ready to run operators that still belong to ``source``; run nothing yet."""

    negotiation: NegotiationId
    source: str
    operators: tuple[str, ...]


@dataclass(frozen=True)
class DropPrepared:
    """Undo the preparations of a negotiation: these operators did not come."""

    negotiation: NegotiationId
    operators: tuple[str, ...]


@dataclass(frozen=True)
class ChangeOwner:
    """Give operators to a neighbour in one recorded step, if all still have these epochs.

    Only their owner asks for it. Not to be begun after ``until_s``. The node is then told what it
    has (:class:`Observed`) and what became of it (:class:`ChangeRecorded`).
    """

    negotiation: NegotiationId
    source: str
    target: str
    portions: tuple[Portion, ...]
    epochs: tuple[tuple[str, int], ...]
    until_s: float


@dataclass(frozen=True)
class Refuse:
    """Log a message that was not acted on, and why."""

    message: NegotiationMessage
    reason: str


Instruction = Prepare | DropPrepared | ChangeOwner | Refuse


@dataclass(frozen=True)
class Observed:
    """What the node sees of itself has changed."""

    view: LocalView


@dataclass(frozen=True)
class ChangeRecorded:
    """A change of owner was tried; ``portions`` are those that now belong to ``target``."""

    negotiation: NegotiationId
    target: str
    portions: tuple[Portion, ...]


NegotiationEvent = Observed | ChangeRecorded
