"""A process of the world: a real :class:`NodeState`, its instructions carried out step by step.

Instructions wait until somebody carries them out, in any order; answers wait until somebody
delivers them, in any order, and some are delivered twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from control.memory_catalog import MemoryCatalog
from penstock.control.node_events import (
    CatalogRead,
    CatalogView,
    Done,
    Event,
    LeaseBegun,
    LeaseRenewed,
    NotDone,
    Occupied,
    Skipped,
    UnitCondition,
    UnitsChecked,
)
from penstock.control.node_instructions import (
    CheckUnits,
    GiveBackLease,
    JoinSystem,
    LogWarning,
    NodeInstruction,
    PrepareMove,
    ReadCatalog,
    ReleaseUnit,
    RenewLease,
    ReportUnit,
    StartUnit,
    StopUnit,
    TakeSample,
    TellMove,
)
from penstock.control.node_state import NodeState
from penstock.control.records import NodeRecord

LEASE_S = 5.0
_Asked = tuple[JoinSystem | RenewLease, float, str]


class UnsafeError(AssertionError):
    """Something happened that must never happen."""


@dataclass
class Process:
    """A process that is a node: what it has decided, what is under way, what it runs.

    A unit is in its hands from the moment its start is begun until its stop is done. ``namesakes``
    are all processes that are, or were, the same node and have not ended.
    """

    state: NodeState
    catalog: MemoryCatalog
    new_life: Callable[[], str]
    namesakes: Callable[[], list[Process]]
    is_frozen: bool = False
    to_do: list[NodeInstruction] = field(default_factory=list)
    asked: list[_Asked] = field(default_factory=list)
    starting: list[StartUnit] = field(default_factory=list)
    answers: list[Event] = field(default_factory=list)
    seen: list[CatalogRead] = field(default_factory=list)
    in_hands: dict[str, int] = field(default_factory=dict)
    ill: dict[str, UnitCondition] = field(default_factory=dict)
    lives: list[str] = field(default_factory=list)

    @property
    def node(self) -> str:
        return self.state.name

    @property
    def running(self) -> dict[str, int]:
        begun = {start.unit.name for start in self.starting}
        return {name: epoch for name, epoch in self.in_hands.items() if name not in begun}

    def has_lease(self, now_s: float) -> bool:
        """Whether others must take what it runs for its own."""
        known = self.catalog.nodes.get(self.node)
        return known is not None and known.incarnation in self.lives and known.is_alive(now_s)

    def owns(self, name: str, now_s: float) -> bool:
        """Whether it works on a unit as its owner: with a lease, and in its own eyes too.

        What was given up but could not be stopped yet works for nobody: its writes are refused.
        """
        known, holding = self.catalog.nodes.get(self.node), self.state.owned.get(name)
        is_node = known is not None and known.is_alive(now_s)
        is_alive = is_node and known.incarnation == self.state.lease.life  # type: ignore[union-attr]
        is_given_up = holding is not None and not holding.epoch
        return name in self.in_hands and is_alive and not is_given_up

    def handle(self, event: Event, now_s: float) -> None:
        given = self.state.handle(event, now_s)
        self.to_do += [one for one in given if not isinstance(one, (LogWarning, TakeSample))]
        if not self.has_lease(now_s):
            self._check_stops()

    def _check_stops(self) -> None:
        """Without a lease everything is being stopped, as soon as the process does anything."""
        # What could not be stopped is tried again; what is being started is stopped right after.
        owned = self.state.owned
        left = [
            name for name in self.in_hands if name not in owned or owned[name].phase == "running"
        ]
        if left:
            raise UnsafeError(f"{self.node} has no lease and keeps {left}")

    def carry_out(self, done: NodeInstruction, now_s: float, works: bool, is_heard: bool) -> None:
        """Carries out an instruction; if it is not heard of, its effect is there all the same."""
        self.to_do.remove(done)
        match done:
            case JoinSystem() | RenewLease():
                self.asked.append((done, now_s, self.new_life()))
                return
            case StartUnit():
                self._begin(done, now_s)
                return
            case ReadCatalog() if works:
                self.seen.append(CatalogRead(done.number, self._view(done, now_s)))
                self.answers.append(self.seen[-1])
                return
            case CheckUnits() if works:
                known = {name: self.ill.get(name, UnitCondition()) for name in done.units}
                self.answers.append(UnitsChecked(done.number, known))
                return
            case StopUnit():
                # Inside a process nothing is lost.
                is_heard = True
                if works:
                    del self.in_hands[done.unit]
                    self.ill.pop(done.unit, None)
            case _ if works or not is_heard:
                self._write(done, now_s)
        self._answer(done, works and is_heard)

    def _answer(self, done: NodeInstruction, is_done: bool) -> None:
        answer = Done(done.number) if is_done else NotDone(done.number, "no memory")
        self.answers.append(answer)

    def _view(self, look: ReadCatalog, now_s: float) -> CatalogView | None:
        if look.known == self.catalog.changes:
            return None
        moves = tuple(move for move in self.catalog.moves.values() if move.is_open)
        units, nodes = tuple(self.catalog.units.values()), tuple(self.catalog.nodes.values())
        return CatalogView(self.catalog.changes, now_s, units, nodes, moves)

    def _write(self, done: NodeInstruction, now_s: float) -> None:
        match done:
            case ReportUnit(_, unit, epoch, state, error):
                self.catalog.report(unit, epoch, state, error)
            case ReleaseUnit(_, unit, epoch, life):
                self._release(unit, epoch, life)
            case TellMove(_, move, error):
                told = {"error": error} if error else {"is_warm": True}
                self.catalog.change_move(move, **told)
            case GiveBackLease(_, life):
                if self.in_hands:
                    raise UnsafeError(f"{self.node} gives its lease back and keeps {self.in_hands}")
                self.catalog.renew(self.node, life, 0.0, now_s)
            case PrepareMove():
                pass

    def _release(self, name: str, epoch: int, life: str) -> None:
        unit = self.catalog.units[name]
        if not self.catalog.release(name, epoch, (self.node, life)):
            return
        # A former process whose lease has run out may still be stopping: it counts no more.
        known = self.catalog.nodes[self.node].incarnation
        present = [one for one in self.namesakes() if one is self or one.state.lease.life == known]
        if any(one.in_hands.get(name, epoch + 1) <= epoch for one in present):
            raise UnsafeError(f"{self.node} releases {name}, epoch {epoch}, before it has stopped")
        is_silent = not (unit.has_said("failed") or unit.has_said("finished"))
        is_present = epoch == unit.epoch and unit.node == self.node and not unit.is_dropped
        if is_present and is_silent and not self.state.is_leaving:
            raise UnsafeError(f"{self.node} releases {name}, epoch {epoch}, without a word")

    def ask(
        self, asked: tuple[JoinSystem | RenewLease, float, str], now_s: float, is_heard: bool
    ) -> None:
        """What was asked of the lease arrives at the catalog, later than it was asked."""
        self.asked.remove(asked)
        done, asked_s, life = asked
        if isinstance(done, JoinSystem):
            record = NodeRecord(self.node, 1, 1 << 30, life, 0, "", asked_s + LEASE_S, now_s)
            self.lives.append(life)
            is_ours = self.catalog.join(record, self.lives, now_s)
            joined = LeaseBegun(done.number, life, asked_s) if is_ours else Occupied(done.number)
            self.answers.append(joined if is_heard else NotDone(done.number, "away"))
        else:
            is_held = self.catalog.renew(self.node, done.life, asked_s + LEASE_S, now_s)
            renewed = LeaseRenewed(done.number, asked_s, is_held)
            self.answers.append(renewed if is_heard else NotDone(done.number, "away"))

    def _begin(self, start: StartUnit, now_s: float) -> None:
        if not self.state.holds(start, now_s):
            self.answers.append(Skipped(start.number))
            return
        name, epoch = start.unit.name, start.unit.epoch
        if self.catalog.owners.get((name, epoch)) != self.node:
            raise UnsafeError(f"{self.node} starts {name}, epoch {epoch}, which it was not given")
        unit, node = self.catalog.units[name], self.catalog.nodes[self.node]
        if unit.released_epoch >= epoch and node.incarnation == start.life:
            raise UnsafeError(f"{self.node} starts {name}, epoch {epoch}, which it has given back")
        if name in self.in_hands:
            raise UnsafeError(f"{self.node} starts {name} twice")
        self.in_hands[name] = epoch
        self.starting.append(start)

    def end_start(self, start: StartUnit, works: bool) -> None:
        """A start that was begun comes to its end."""
        self.starting.remove(start)
        if not works:
            del self.in_hands[start.unit.name]
        self._answer(start, works)
