"""What a protocol is: the decisions of one node among others, without a clock or a network.

A protocol is to the conversation of nodes what a :class:`~penstock.place.strategy.Strategy` is to
a first placement: one class to subclass. Whoever runs it, simulated or live, hands it what
happened to a node, sends the messages it answers with, and carries its instructions out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, TypeVar

State = TypeVar("State")
Event = TypeVar("Event")
Message = TypeVar("Message")
Instruction = TypeVar("Instruction")
Rng = TypeVar("Rng", contravariant=True)


@dataclass(frozen=True)
class Tick:
    """Time has passed, and nothing else happened."""


class Reaction(NamedTuple, Generic[State, Message, Instruction]):
    """What a node comes to: its new state, what it sends, and what it wants done."""

    state: State
    messages: Sequence[Message] = ()
    instructions: Sequence[Instruction] = ()


class Protocol(ABC, Generic[State, Event, Message, Instruction, Rng]):
    """The part of one node.

    Messages may be lost, doubled, late or in another order; a node may stop and begin again.
    ``handle`` depends on its arguments alone, so the same run can be repeated to the byte; it may
    change the state that it is given, and gives back the one that holds.
    """

    name: ClassVar[str]
    """What people call it: on the command line and in deployment files."""

    @abstractmethod
    def handle(
        self,
        state: State,
        event: Event | Message | Tick,
        now_s: float,
        rng: Rng,
    ) -> Reaction[State, Message, Instruction]:
        """What a node in ``state`` does about an event."""

    @abstractmethod
    def wake_at_s(self, state: State) -> float:
        """When the node wants its next tick, if nothing happens before."""
