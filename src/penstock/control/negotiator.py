"""A live node's part in the balancing of its tree: pure.

What the node has read, measured and been told goes in; messages, hand-overs and refusals come out.
The decisions are those of :class:`~penstock.balance.hierarchy.negotiation.Hierarchy`, as in the
simulator. A change of owner is carried out in two steps, so that the pause is short: moves are
recorded, for which their target gets ready, and when it is, or time is up, the units change hands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from penstock.balance.hierarchy.choosing import sum_sizes
from penstock.balance.hierarchy.instructions import (
    ChangeOwner,
    ChangeRecorded,
    DropPrepared,
    NegotiationEvent,
    Observed,
    Prepare,
    Refuse,
)
from penstock.balance.hierarchy.measures import SIZE_DIGITS, Capacity, as_heard, as_sent
from penstock.balance.hierarchy.messages import MessageType, NegotiationMessage
from penstock.balance.hierarchy.negotiation import Hierarchy
from penstock.balance.hierarchy.settings import HierarchySettings, Utilisation
from penstock.balance.hierarchy.state import NegotiatingNode
from penstock.control.hand_over_rules import HandOver
from penstock.control.negotiation_story import NegotiationRecord, StoryTeller
from penstock.control.tree_situation import TreeSituation, look_around
from penstock.model.protocol import Tick

_TO_RECORD_S = 1.0
"""What is kept of the time agreed for recording the change itself."""
_SENDERS_OWN = (
    MessageType.OFFER_REQUEST,
    MessageType.OFFER_TRANSFER_REQUEST,
    MessageType.DEMAND_REPLY,
)
_OURS = (
    MessageType.OFFER_REPLY,
    MessageType.OFFER_TRANSFER_REPLY,
    MessageType.DEMAND_TRANSFER_REQUEST,
)


@dataclass(frozen=True)
class SendMessage:
    """Say this to a neighbour."""

    message: NegotiationMessage


@dataclass(frozen=True)
class BeginMoves:
    """Record moves of these units, for which their target gets ready."""

    number: int
    step: HandOver
    numbers: dict[str, object]
    reason: str


@dataclass(frozen=True)
class ChangeHands:
    """Give the units to their new owner, in one recorded step."""

    number: int
    step: HandOver
    moves: tuple[int, ...]


@dataclass(frozen=True)
class EndMoves:
    """Record how moves have ended."""

    moves: tuple[int, ...]
    error: str = ""


@dataclass(frozen=True)
class RefuseMessage:
    """Log a message that was not acted on."""

    sender: str
    reason: str


@dataclass(frozen=True)
class TellNegotiation:
    """Record what became of a negotiation."""

    record: NegotiationRecord


TreeInstruction = (
    SendMessage | BeginMoves | ChangeHands | EndMoves | RefuseMessage | TellNegotiation
)


@dataclass(frozen=True)
class MovesBegun:
    """Moves were recorded, or ``why`` not."""

    number: int
    moves: tuple[int, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class HandsChanged:
    """The units have a new owner, or ``why`` not."""

    number: int
    why: str = ""


@dataclass
class _Step:
    """A change of owner under way."""

    asked: ChangeOwner
    step: HandOver
    phase: Literal["recording", "preparing", "changing", "starting"] = "recording"
    moves: tuple[int, ...] = ()


@dataclass
class Negotiator:
    """One life of one node: what it knows, and the state of the protocol."""

    name: str
    settings: HierarchySettings
    rng: np.random.Generator
    incarnation: int
    situation: TreeSituation
    now_s: float
    promised: dict[str, float] = field(default_factory=dict)
    _steps: dict[int, _Step] = field(default_factory=dict)
    _number: int = 0
    _told: object = None
    _out: list[TreeInstruction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._protocol = Hierarchy(self.settings)
        self._story = StoryTeller(self.name)
        view = look_around(self.situation, self.settings, self.promised)
        self.state: NegotiatingNode = self._protocol.begin(
            self.name,
            self.situation.neighbours,
            view,
            self.now_s,
            self.rng,
            # Never its first life: what it agreed to in one before, nobody knows any more.
            self.incarnation,
        )

    @property
    def wake_at_s(self) -> float:
        """When it wants to be ticked next."""
        return self._protocol.wake_at_s(self.state)

    @property
    def is_at_work(self) -> bool:
        """Whether a negotiation or a change of owner is under way."""
        return self.state.negotiation is not None or bool(self._steps)

    def observe(self, situation: TreeSituation, now_s: float) -> list[TreeInstruction]:
        """The node has read the catalog, or measured itself."""
        self._out = []
        self.situation = situation
        mine = {name for name in situation.units if situation.owns(name, self.name)}
        waiting = self._expected()
        self.promised = {
            name: size
            for name, size in self.promised.items()
            if name in waiting or (name in mine and name not in situation.sizes.cpu)
        }
        if self.state.negotiation is None:
            self.state = replace(self.state, neighbours=situation.neighbours)
        self._look(now_s)
        self._go_on(now_s)
        return self._out

    def tick(self, now_s: float) -> list[TreeInstruction]:
        """Time has passed."""
        self._out = []
        self._handle(Tick(), now_s)
        self._go_on(now_s)
        return self._out

    def hear(self, sender: str, message: NegotiationMessage, now_s: float) -> list[TreeInstruction]:
        """A message has come from a node that is who it says."""
        self._out = []
        why = self._why_refused(sender, message)
        if why:
            self._out.append(RefuseMessage(sender, why))
            return self._out
        message = as_heard(message, *self._measures(sender))
        self._story.note_heard(message)
        if message.type is MessageType.OFFER_TRANSFER_REQUEST:
            self._promise(message)
        self._handle(message, now_s)
        return self._out

    def answer(self, came: MovesBegun | HandsChanged, now_s: float) -> list[TreeInstruction]:
        """A step that was asked for was tried."""
        self._out = []
        step = self._steps.get(came.number)
        if step is None:
            return self._out
        if isinstance(came, MovesBegun) and not came.why:
            step.phase, step.moves = "preparing", came.moves
        elif isinstance(came, HandsChanged) and not came.why:
            step.phase = "starting"
            self._give_away(step.step)
            self._look(now_s)
            self._record(step, True, "", now_s)
        else:
            del self._steps[came.number]
            if step.moves:
                self._out.append(EndMoves(step.moves, came.why))
            self._record(step, False, came.why, now_s)
        return self._out

    def give_up(self, why: str) -> list[TreeInstruction]:
        """The node negotiates no more: what has not changed hands stays where it is."""
        begun = [step for step in self._steps.values() if step.phase in ("preparing", "changing")]
        self._steps.clear()
        return [EndMoves(step.moves, why) for step in begun]

    # What comes in.

    def _why_refused(self, sender: str, message: NegotiationMessage) -> str:
        if message.sender != sender:
            return f"{sender} speaks for {message.sender}"
        if message.receiver != self.name:
            return f"a message to {message.receiver}"
        if sender not in self.situation.tree.neighbours(self.name):
            return f"{sender} is no neighbour of {self.name}"
        names = [unit for portion in message.transfers for unit in portion.operators]
        for kinds, owner in ((_SENDERS_OWN, sender), (_OURS, self.name)):
            if message.type in kinds:
                foreign = [unit for unit in names if not self.situation.owns(unit, owner)]
                if foreign:
                    return f"{message.type.value} about {foreign[0]}, which is not {owner}'s"
        return ""

    def _promise(self, message: NegotiationMessage) -> None:
        """What may come here counts as much as it was said to, until it was measured here."""
        for portion in message.transfers:
            share = round(portion.size / len(portion.operators), SIZE_DIGITS)
            self.promised |= dict.fromkeys(portion.operators, share)

    def _expected(self) -> set[str]:
        answering = self.state.negotiation
        prepared = getattr(answering, "prepared", ())
        return {*prepared}

    def _look(self, now_s: float) -> None:
        view = look_around(self.situation, self.settings, self.promised)
        if view != self.state.view:
            self._handle(Observed(view), now_s)

    # What the protocol says.

    def _handle(self, event: NegotiationEvent | NegotiationMessage | Tick, now_s: float) -> None:
        used = self.state.view.utilisation
        self.state, messages, instructions = self._protocol.handle(
            self.state, event, now_s, self.rng
        )
        for message in messages:
            self._say(message, used)
        for instruction in instructions:
            match instruction:
                case ChangeOwner():
                    self._begin(instruction, now_s)
                case Refuse(message, reason):
                    self._out.append(RefuseMessage(message.sender, reason))
                case Prepare() | DropPrepared():
                    # The record of a move has its target get ready, and its end let go again.
                    pass
        self._tell_what_is_over()

    def _say(self, message: NegotiationMessage, used: float) -> None:
        first = message.type in (MessageType.OFFER_REQUEST, MessageType.DEMAND_REQUEST)
        if first and message.receiver == self.state.neighbours[0]:
            lower, upper = self.settings.lower, self.settings.upper
            at_s = self.situation.catalog_s
            self._story.begin(message.negotiation, at_s, used, lower, upper)
        if message.type is MessageType.DEMAND_TRANSFER_REQUEST:
            self._promise(message)
        self._story.note_sent(message)
        self._out.append(SendMessage(as_sent(message, *self._measures(message.receiver))))

    def _measures(self, peer: str) -> tuple[Capacity, Capacity, Utilisation]:
        """What the node and a neighbour have, and what of it is balanced."""
        known = self.situation.capacity
        return known(self.name), known(peer), self.settings.utilisation

    def _tell_what_is_over(self) -> None:
        negotiation = self.state.negotiation
        still = None if negotiation is None else negotiation.id
        for record in self._story.end(still):
            told = record.outcome
            if record.is_worth_telling and (record.has_moved or told != self._told):
                self._out.append(TellNegotiation(record))
            self._told = told

    # Units change hands.

    def _begin(self, asked: ChangeOwner, now_s: float) -> None:
        self._number += 1
        until_s = self.situation.catalog_s + asked.until_s - now_s
        step = HandOver(self.name, self.situation.life, asked.target, asked.epochs, until_s)
        self._steps[self._number] = _Step(asked, step)
        numbers = self._numbers(asked)
        kind = "demand" if asked.negotiation.initiator != self.name else "offer"
        reason = (
            f"{self.name} at {self.state.view.utilisation:.0f} %, "
            f"{asked.target} {'asked for' if kind == 'demand' else 'took'} "
            f"{sum_sizes(asked.portions):.1f} %"
        )
        self._out.append(BeginMoves(self._number, step, numbers, reason))

    def _numbers(self, asked: ChangeOwner) -> dict[str, object]:
        return {
            "by": "neighbours",
            "policy": Hierarchy.name,
            "negotiation": str(asked.negotiation),
            "utilisation": round(self.state.view.utilisation, 2),
            "lower": self.settings.lower,
            "upper": self.settings.upper,
            "sizes": {
                name: round(self.state.view.sizes.get(name, 0.0), 2) for name, _ in asked.epochs
            },
        }

    def _go_on(self, now_s: float) -> None:
        """Takes each change of owner a step further, if it is time to."""
        for number, step in tuple(self._steps.items()):
            moves = [move for move in self.situation.moves if move.id in step.moves]
            if step.phase == "preparing":
                is_late = now_s >= step.asked.until_s - _TO_RECORD_S
                failed = [move.error for move in moves if move.error]
                if failed:
                    self._steps.pop(number)
                    self._out.append(EndMoves(step.moves, failed[0]))
                    self._record(step, False, failed[0], now_s)
                elif is_late or (len(moves) == len(step.moves) and all(m.is_warm for m in moves)):
                    step.phase = "changing"
                    self._out.append(ChangeHands(number, step.step, step.moves))
            elif step.phase == "starting" and all(self._has_arrived(step)):
                del self._steps[number]
                self._out.append(EndMoves(step.moves))

    def _has_arrived(self, step: _Step) -> Iterator[bool]:
        """Whether each unit runs at its new owner, or has gone on from there."""
        for name, epoch in step.step.epochs:
            unit = self.situation.units.get(name)
            yield unit is None or unit.epoch > epoch + 1 or (unit.epoch == epoch + 1 and unit.is_up)

    def _give_away(self, step: HandOver) -> None:
        """What was read before is not true any more of what was given away."""
        given = {
            name: replace(
                self.situation.units[name], node=step.target, epoch=epoch + 1, previous=self.name
            )
            for name, epoch in step.epochs
            if name in self.situation.units
        }
        self.situation = replace(self.situation, units={**self.situation.units, **given})

    def _record(self, step: _Step, is_done: bool, why: str, now_s: float) -> None:
        asked = step.asked
        portions = asked.portions if is_done else ()
        moved = step.step.units if is_done else ()
        if asked.negotiation.initiator == self.name:
            self._story.note_moved(asked.negotiation, asked.target, moved, why)
        self._handle(ChangeRecorded(asked.negotiation, asked.target, portions), now_s)
