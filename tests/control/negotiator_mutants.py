"""Parts in live negotiations with one thing wrong each; the laws have to notice every one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.balance.hierarchy.instructions import ChangeOwner, ChangeRecorded
from penstock.balance.hierarchy.messages import NegotiationMessage
from penstock.control.negotiator import (
    ChangeHands,
    EndMoves,
    HandsChanged,
    MovesBegun,
    Negotiator,
    SendMessage,
    TreeInstruction,
)


class TakesWhateverComes(Negotiator):
    """From a former parent as from anybody."""

    def _why_refused(self, sender: str, message: NegotiationMessage) -> str:
        return ""


class BelievesWhoeverSpeaks(Negotiator):
    def _why_refused(self, sender: str, message: NegotiationMessage) -> str:
        return super()._why_refused(message.sender, message)


class DealsInWhatIsOthers(Negotiator):
    def _why_refused(self, sender: str, message: NegotiationMessage) -> str:
        return super()._why_refused(sender, replace(message, transfers=()))


class KeepsItsFormerNeighbours(Negotiator):
    def observe(self, situation: Any, now_s: float) -> list[TreeInstruction]:
        before = self.state.neighbours
        done = super().observe(situation, now_s)
        self.state = replace(self.state, neighbours=before)
        return done


class HasOneLife(Negotiator):
    """Its negotiations are called like those of the life before."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = replace(self.state, incarnation=0)


class NegotiatesAtOnce(Negotiator):
    """Though nobody knows what it agreed to in the life before."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = replace(self.state, quiet_until_s=0.0)


class SpeaksForWhoeverIsItsNode(Negotiator):
    """Asks in the life that the catalog knows, not in its own."""

    def _begin(self, asked: ChangeOwner, now_s: float) -> None:
        super()._begin(asked, now_s)
        life = self.situation.nodes[self.name].incarnation
        begin = self._out[-1]
        self._out[-1] = replace(begin, step=replace(begin.step, life=life))  # type: ignore[union-attr,type-var]


class ChangesHandsUnannounced(Negotiator):
    """Before any move is recorded for which the target gets ready."""

    def _begin(self, asked: ChangeOwner, now_s: float) -> None:
        super()._begin(asked, now_s)
        step = self._steps[self._number]
        step.phase = "changing"
        self._out[-1] = ChangeHands(self._number, step.step, ())


class DoesNotWaitForTheTarget(Negotiator):
    def answer(self, came: MovesBegun | HandsChanged, now_s: float) -> list[TreeInstruction]:
        done = super().answer(came, now_s)
        if isinstance(came, MovesBegun) and not came.why:
            step = self._steps[came.number]
            step.phase = "changing"
            done.append(ChangeHands(came.number, step.step, came.moves))
        return done


class WaitsForTheTargetForEver(Negotiator):
    def _go_on(self, now_s: float) -> None:
        super()._go_on(-1e9)


class TakesTheStepForDone(Negotiator):
    """Whatever the catalog says."""

    def answer(self, came: MovesBegun | HandsChanged, now_s: float) -> list[TreeInstruction]:
        return super().answer(replace(came, why=""), now_s)


class TakesTheAnnouncementForTheStep(Negotiator):
    def answer(self, came: MovesBegun | HandsChanged, now_s: float) -> list[TreeInstruction]:
        done = super().answer(came, now_s)
        if isinstance(came, MovesBegun) and not came.why:
            self._give_away(self._steps[came.number].step)
            self._look(now_s)
        return done


class GivesThoughItCannotBePrepared(Negotiator):
    def _go_on(self, now_s: float) -> None:
        moves = tuple(replace(move, error="", is_warm=True) for move in self.situation.moves)
        self.situation = replace(self.situation, moves=moves)
        super()._go_on(now_s)


class ForgetsToConfirm(Negotiator):
    def _record(self, *given: Any) -> None:
        before = len(self._out)
        super()._record(*given)
        self._out[before:] = [
            done for done in self._out[before:] if not isinstance(done, SendMessage)
        ]


class ForgetsThatItIsOver(Negotiator):
    """It never tells the protocol what came of a step, and stays busy."""

    def _handle(self, event: Any, now_s: float) -> None:
        if not isinstance(event, ChangeRecorded):
            super()._handle(event, now_s)


class LeavesMovesOpen(Negotiator):
    def observe(self, situation: Any, now_s: float) -> list[TreeInstruction]:
        done = super().observe(situation, now_s)
        return [some for some in done if not isinstance(some, EndMoves)]


class LeavesMovesOpenWhenItGivesUp(Negotiator):
    def give_up(self, why: str) -> list[TreeInstruction]:
        super().give_up(why)
        return []


class BelievesWhatItReadBeforeItGave(Negotiator):
    def _give_away(self, step: Any) -> None:
        pass


class ForgetsWhatItPromised(Negotiator):
    def _promise(self, message: NegotiationMessage) -> None:
        pass


class NeverFreesWhatItPromised(Negotiator):
    def _expected(self) -> set[str]:
        return {*self.promised}


class ReckonsInPercentOfOthers(Negotiator):
    def hear(self, sender: str, message: NegotiationMessage, now_s: float) -> list[TreeInstruction]:
        own = self.situation.nodes[self.name]
        nodes = {**self.situation.nodes, sender: replace(own, name=sender)}
        situation, self.situation = self.situation, replace(self.situation, nodes=nodes)
        done = super().hear(sender, message, now_s)
        self.situation = situation
        return done


class CountsItsTimeFromTheAnnouncement(Negotiator):
    """Asks for the step later than its neighbour keeps room for it."""

    def _begin(self, asked: ChangeOwner, now_s: float) -> None:
        super()._begin(replace(asked, until_s=now_s + self.settings.hold_s), now_s)


MUTANTS: tuple[type[Negotiator], ...] = (
    TakesWhateverComes,
    BelievesWhoeverSpeaks,
    DealsInWhatIsOthers,
    KeepsItsFormerNeighbours,
    HasOneLife,
    NegotiatesAtOnce,
    SpeaksForWhoeverIsItsNode,
    ChangesHandsUnannounced,
    DoesNotWaitForTheTarget,
    WaitsForTheTargetForEver,
    TakesTheStepForDone,
    TakesTheAnnouncementForTheStep,
    GivesThoughItCannotBePrepared,
    ForgetsToConfirm,
    ForgetsThatItIsOver,
    LeavesMovesOpen,
    LeavesMovesOpenWhenItGivesUp,
    BelievesWhatItReadBeforeItGave,
    ForgetsWhatItPromised,
    NeverFreesWhatItPromised,
    ReckonsInPercentOfOthers,
    CountsItsTimeFromTheAnnouncement,
)
