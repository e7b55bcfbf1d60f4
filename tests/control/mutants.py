"""Nodes and catalogs that each break one rule; the world has to notice every one of them.

Most show in some course of events that is drawn (:data:`NOTICED` says as what), some only in
courses that are too rare to wait for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from control.memory_catalog import MemoryCatalog
from penstock.control.decisions import Assign
from penstock.control.node_events import CatalogRead, CatalogView, Event, LeaseRenewed
from penstock.control.node_instructions import GiveBackLease, NodeInstruction, ReportUnit, StartUnit
from penstock.control.node_outbox import Outbox
from penstock.control.node_state import Ending, HeldUnit, NodeState
from penstock.control.records import NodeRecord, UnitRecord


class ReleasesBeforeItStops(NodeState):
    def _stop(self, name: str, holding: HeldUnit, why: Ending, patience_s: float = 0.0) -> None:
        super()._stop(name, holding, why, patience_s)
        if why == "released" and holding.epoch:
            self._tell(self._release(name, holding.epoch))


class ReleasesWhileItStops(NodeState):
    """It takes for stopped what could not be."""

    def _on_not_stopped(self, name: str, holding: HeldUnit, error: str, now_s: float) -> None:
        super()._on_not_stopped(name, holding, error, now_s)
        if holding.ending == "released" and holding.epoch:
            self._tell(self._release(name, holding.epoch))


class StartsWhatIsNotItsOwn(NodeState):
    def _is_wanted(self, unit: UnitRecord) -> bool:
        return unit.node is not None and not unit.is_dropped and not unit.has_said("finished")


class DoesNotCheckItsLease(NodeState):
    def __init__(self, name: str, lease_s: float) -> None:
        super().__init__(name, lease_s)
        self.lease.is_over = lambda now_s: False  # type: ignore[method-assign]


class CountsItsLeaseFromTheAnswer(NodeState):
    def handle(self, event: Event, now_s: float) -> list[NodeInstruction]:
        if isinstance(event, LeaseRenewed):
            event = replace(event, asked_s=now_s)
        return super().handle(event, now_s)


class DoesNotWaitForTheFormerOwner(NodeState):
    def _may_start(self, unit: UnitRecord, view: CatalogView) -> bool:
        return unit.released_epoch < unit.epoch


class StartsWhatWasGivenBack(NodeState):
    def _start_missing(self, wanted: Iterable[UnitRecord], view: CatalogView) -> None:
        kept = [
            replace(unit, released_epoch=min(unit.released_epoch, unit.epoch - 1))
            for unit in wanted
        ]
        super()._start_missing(kept, view)


class SaysNothingOfFailures(NodeState):
    def _tell_failed(self, name: str, epoch: int, error: str) -> None:
        self._tell(self._release(name, epoch))


class ReleasesBeforeItReports(NodeState):
    def _tell_failed(self, name: str, epoch: int, error: str) -> None:
        self._tell(self._release(name, epoch), ReportUnit(0, name, epoch, "failed", error))


class StartsWhatItDecidedInAFormerLife(NodeState):
    def holds(self, start: StartUnit, now_s: float) -> bool:
        return True


class JoinsBeforeItHasStopped(NodeState):
    @property
    def _may_ask_for_lease(self) -> bool:
        return not self.is_leaving and not self._is_replaced


class BelievesEveryView(NodeState):
    """However late it comes, or how often."""

    def _on_seen(self, event: CatalogRead, now_s: float) -> None:
        if self.lease.life is not None:
            self._looking = event.number
            super()._on_seen(event, now_s)


class BelievesWhatItReadBeforeItSpoke(NodeState):
    def _on_seen(self, event: CatalogRead, now_s: float) -> None:
        self._shown_from.clear()
        super()._on_seen(event, now_s)


class StartsBeforeItHasSpoken(NodeState):
    """What it still has to say of a unit comes after its start."""

    def __init__(self, name: str, lease_s: float) -> None:
        super().__init__(name, lease_s)
        self.outbox.__class__ = _ForgetfulOutbox


class _ForgetfulOutbox(Outbox):
    def __contains__(self, unit: str) -> bool:
        return False


class DoesNotSayWhatItNeverStarted(NodeState):
    def _disown(self, unit: UnitRecord) -> None:
        pass


class SaysThingsOnce(NodeState):
    def __init__(self, name: str, lease_s: float) -> None:
        super().__init__(name, lease_s)
        answer = self.outbox.answer
        self.outbox.answer = lambda *given, **also: answer(*given, is_last_try=True)  # type: ignore[method-assign]


class KeepsWhatWasTakenAway(NodeState):
    def _stop_unwanted(self, *given: object) -> None:
        pass


class TriesToStopOnce(NodeState):
    def _stop_stuck(self, now_s: float) -> None:
        pass

    def _has_to_try_again(self, now_s: float) -> bool:
        return False

    def _stop(self, name: str, holding: HeldUnit, why: Ending, patience_s: float = 0.0) -> None:
        if holding.phase != "stuck":
            super()._stop(name, holding, why, patience_s)


class GivesItsLeaseBackFirst(NodeState):
    def _leave(self) -> None:
        if self.lease.life is not None and self._giving_back is None:
            self._giving_back = self._next_number()
            self._out.append(GiveBackLease(self._giving_back, self.lease.life))
        else:
            super()._leave()


class StartsWhileItLeaves(NodeState):
    def _on_started(self, name: str, holding: HeldUnit) -> None:
        if self.is_leaving:
            holding.phase = "running"
        else:
            super()._on_started(name, holding)


class BelievesFormerLives(MemoryCatalog):
    """A process is listened to after another one has become its node."""

    def release(self, name: str, epoch: int, by: tuple[str, str]) -> bool:
        node = self.nodes.get(by[0])
        return super().release(name, epoch, (by[0], node.incarnation if node else by[1]))


class LetsAnybodyJoin(MemoryCatalog):
    def join(self, node: NodeRecord, former: Collection[str], now_s: float) -> bool:
        known = self.nodes.get(node.name)
        return super().join(node, [known.incarnation] if known else [], now_s)


class AssignsTwice(MemoryCatalog):
    """It does not compare the epoch that a decision rests on."""

    def _assign(self, given: Assign) -> None:
        super()._assign(replace(given, unit=self.units[given.unit.name]))


NOTICED: dict[type[NodeState], str] = {
    ReleasesBeforeItStops: "before it has stopped",
    ReleasesWhileItStops: "before it has stopped",
    StartsWhatIsNotItsOwn: "which it was not given",
    DoesNotCheckItsLease: "has no lease and keeps",
    DoesNotWaitForTheFormerOwner: "is run by",
    StartsWhatWasGivenBack: "which it has given back",
    SaysNothingOfFailures: "without a word",
    ReleasesBeforeItReports: "without a word",
    StartsWhatItDecidedInAFormerLife: "",
    JoinsBeforeItHasStopped: "",
    BelievesEveryView: "",
    StartsBeforeItHasSpoken: "",
    DoesNotSayWhatItNeverStarted: "does not run",
    SaysThingsOnce: "",
    KeepsWhatWasTakenAway: "",
    TriesToStopOnce: "",
    GivesItsLeaseBackFirst: "gives its lease back and keeps",
    StartsWhileItLeaves: "",
}
MUTANTS = tuple(NOTICED)
CATALOGS = (LetsAnybodyJoin, AssignsTwice)
