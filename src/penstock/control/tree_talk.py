"""A live node among its neighbours in a tree: reads, measures, sends, and records for it.

What to say and to do is decided by :class:`~penstock.control.negotiator.Negotiator`.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict

import numpy as np

from penstock.balance.hierarchy.messages import NegotiationMessage
from penstock.balance.hierarchy.written import LiveHierarchy
from penstock.control.carriers import Carrier
from penstock.control.catalog import Catalog
from penstock.control.hand_over_rules import HandOver
from penstock.control.letters import Letter
from penstock.control.live_tree import tree_wiring
from penstock.control.negotiation_story import NEGOTIATION, NegotiationRecord
from penstock.control.negotiator import (
    BeginMoves,
    ChangeHands,
    EndMoves,
    HandsChanged,
    MovesBegun,
    Negotiator,
    RefuseMessage,
    SendMessage,
    TellNegotiation,
    TreeInstruction,
)
from penstock.control.recorded_plans import recorded_system
from penstock.control.records import BalanceRecord, NodeRecord, Submission
from penstock.control.system_balance import balance_settings, read_balance
from penstock.control.tree_situation import TreeSituation
from penstock.control.tree_sizes import SizeMeter
from penstock.errors import PenstockError
from penstock.model.measurements import NodeSample
from penstock.model.protocol import Tick
from penstock.place.tree_placing import TreeWiring

_LOOK_EVERY_S = 0.5
_LOOK_AT_WORK_EVERY_S = 0.05
_LEAST_WINDOW_S = 4.0
_SENDERS = 4
_REFUSALS_LOGGED_AT_MOST = 100

log = logging.getLogger(__name__)


class TreeTalk:
    """Negotiates for a node, from :meth:`join` to :meth:`end`, where its tree is balanced so.

    What goes wrong is logged; messages that are lost are not sent again.
    """

    def __init__(
        self,
        node: NodeRecord,
        catalog: Catalog,
        carrier: Carrier,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node.name
        self._catalog = catalog
        self._carrier = carrier
        self._clock = clock
        self._meter = SizeMeter(node.cores, node.memory_bytes)
        self._rng = np.random.default_rng()
        self._inbox: queue.SimpleQueue[Letter | NodeSample | Tick | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._senders = ThreadPoolExecutor(_SENDERS, thread_name_prefix=f"send-{node.name}")
        self._life = ""
        self._negotiator: Negotiator | None = None
        self._negotiates_as: tuple[str, LiveHierarchy, Mapping[str, str | None]] | None = None
        self._balance: tuple[BalanceRecord, LiveHierarchy | None] = BalanceRecord(), None
        self._wired: tuple[tuple[Submission, ...], tuple[str | None, ...]] | None = None
        self._wiring: TreeWiring | None = None
        self._bound: frozenset[str] = frozenset()
        self._changes = -1
        self._looked_s = -float("inf")
        self._refused = 0
        self._unreachable: set[str] = set()

    def join(self, life: str) -> None:
        """The node has joined, in this life."""
        self._life = life
        if self._thread is None:
            name = f"tree-{self._node}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def hear(self, letter: Letter) -> None:
        """A message of a negotiation has come, from a node that is who it says."""
        self._inbox.put(letter)

    def note(self, measured: NodeSample) -> None:
        """The node has measured itself."""
        self._inbox.put(measured)

    def end(self) -> None:
        """Says and hears nothing any more."""
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join()
        self._senders.shutdown(cancel_futures=True)

    def _run(self) -> None:
        while True:
            came: Letter | NodeSample | Tick | None = Tick()
            with suppress(queue.Empty):
                came = self._inbox.get(timeout=self._pause_s())
            if came is None:
                return
            try:
                self.take(came)
            except Exception as error:
                is_known = isinstance(error, PenstockError)
                log.warning(
                    "node %s could not negotiate: %s", self._node, error, exc_info=not is_known
                )

    def _pause_s(self) -> float:
        if self._negotiator is None:
            return _LOOK_EVERY_S
        pause_s = self._negotiator.wake_at_s - self._clock()
        return min(max(0.001, pause_s), self._look_every_s)

    @property
    def _look_every_s(self) -> float:
        is_at_work = self._negotiator is not None and self._negotiator.is_at_work
        return _LOOK_AT_WORK_EVERY_S if is_at_work else _LOOK_EVERY_S

    def take(self, came: Letter | NodeSample | Tick) -> None:
        """Takes what has come to whoever decides, and does what that says."""
        if isinstance(came, NodeSample):
            self._meter.note(came)
        self._look(is_measured=isinstance(came, NodeSample))
        if self._negotiator is None:
            return
        if isinstance(came, Letter) and came.negotiation is not None:
            message = NegotiationMessage.of_record(came.negotiation)
            self._do(self._negotiator.hear(came.sender, message, self._clock()))
        self._do(self._negotiator.tick(self._clock()))

    # What the node knows.

    def _look(self, is_measured: bool) -> None:
        """Reads the catalog if something has changed there, and at times for the leases."""
        now_s = self._clock()
        if not is_measured and now_s - self._looked_s < self._look_every_s:
            return
        self._looked_s = now_s
        changes = self._catalog.changes()
        if changes == self._changes and not is_measured:
            return
        self._changes = changes
        record = read_balance(self._catalog)
        if record != self._balance[0]:
            self._balance = record, balance_settings(record).tree
        settings = self._balance[1]
        situation = None if settings is None else self._situation(settings)
        if settings is None or situation is None:
            self._stop_negotiating(f"{self._node} negotiates no more")
            return
        self._observe(settings, situation)

    def _observe(self, settings: LiveHierarchy, situation: TreeSituation) -> None:
        as_whom = situation.life, settings, situation.tree.parents
        if self._negotiator is None or as_whom != self._negotiates_as:
            self._stop_negotiating("it is balanced in another way now")
            incarnation = int(1_000 * time.time())
            self._negotiates_as = as_whom
            self._negotiator = Negotiator(
                self._node,
                settings.protocol,
                self._rng,
                incarnation,
                situation,
                self._clock(),
            )
            log.info("node %s negotiates, as #%d", self._node, incarnation)
        self._do(self._negotiator.observe(situation, self._clock()))

    def _stop_negotiating(self, why: str) -> None:
        if self._negotiator is not None:
            self._do(self._negotiator.give_up(why))
        self._negotiator = self._negotiates_as = None

    def _situation(self, settings: LiveHierarchy) -> TreeSituation | None:
        nodes = self._catalog.nodes()
        self._wire(nodes)
        own = next((node for node in nodes if node.name == self._node), None)
        now_s = self._catalog.now_s()
        if self._wiring is None or own is None or not own.is_alive(now_s):
            return None
        if own.incarnation != self._life:
            return None
        window_s = max(_LEAST_WINDOW_S, settings.protocol.period_s)
        return TreeSituation(
            self._node,
            self._life,
            self._wiring,
            {unit.name: unit for unit in self._catalog.units()},
            {node.name: node for node in nodes},
            self._catalog.moves(open_only=True),
            self._meter.sizes(window_s, settings.budget_bytes),
            self._bound,
            now_s,
            settings.budget_bytes,
        )

    def _wire(self, nodes: tuple[NodeRecord, ...]) -> None:
        """What flows where: worked out again where submissions or the tree have changed."""
        known = self._catalog.submissions(), tuple(node.parent for node in nodes)
        if known != self._wired:
            system = recorded_system(self._catalog.plans())
            self._wiring = tree_wiring(nodes, system)
            self._bound = frozenset(
                unit.name
                for unit in system.units.values()
                if unit.fragment is not None and unit.fragment.is_bound
            )
            self._wired = known

    # What is to be done.

    def _do(self, instructions: list[TreeInstruction]) -> None:
        waiting = list(instructions)
        while waiting and self._negotiator is not None:
            instruction = waiting.pop(0)
            try:
                answer = self._carry_out(instruction)
            except PenstockError as error:
                log.warning("node %s: %s", self._node, error)
                answer = _not_done(instruction, str(error))
            if answer is not None:
                waiting += self._negotiator.answer(answer, self._clock())

    def _carry_out(self, instruction: TreeInstruction) -> MovesBegun | HandsChanged | None:
        match instruction:
            case SendMessage(message):
                self._senders.submit(self._send, message, self._life)
            case BeginMoves(number, step, numbers, reason):
                assert self._wiring is not None
                rows = self._rows(step, numbers, reason)
                begun, why = self._catalog.begin_hand_over(step, self._wiring, rows)
                return MovesBegun(number, tuple(begun), why)
            case ChangeHands(number, step, moves):
                assert self._wiring is not None
                return HandsChanged(number, self._catalog.hand_over(step, self._wiring, moves))
            case EndMoves(moves, error):
                for move in moves:
                    self._end(move, error)
            case RefuseMessage(sender, reason):
                self._refuse(sender, reason)
            case TellNegotiation(record):
                told = asdict(record)
                del told["id"]
                self._catalog.tell(NEGOTIATION, record.node, negotiation_text(record), told=told)
        return None

    def _rows(
        self, step: HandOver, numbers: dict[str, object], reason: str
    ) -> list[dict[str, object]]:
        now_s = self._catalog.now_s()
        return [
            {
                "unit": unit,
                "source": step.source,
                "target": step.target,
                "state": "preparing",
                "created_s": now_s,
                "reason": reason,
                "numbers": {**numbers, "with": [name for name in step.units if name != unit]},
            }
            for unit in step.units
        ]

    def _end(self, number: int, error: str) -> None:
        """Records how a move has ended, unless somebody has done so before."""
        move, now_s = self._catalog.move(number), self._catalog.now_s()
        state = "failed" if error else "done"
        changed = self._catalog.change_move(number, state=state, error=error, ended_s=now_s)
        if changed and move is not None:
            how = f"failed: {error}" if error else f"done in {now_s - move.created_s:.1f} s"
            text = f"{move.source} → {move.target} {how}"
            self._catalog.tell("move", move.unit, text, move=number, **dict(move.numbers))

    def _refuse(self, sender: str, reason: str) -> None:
        self._refused += 1
        if self._refused <= _REFUSALS_LOGGED_AT_MOST:
            log.warning("node %s refused a negotiation of %s: %s", self._node, sender, reason)

    def _send(self, message: NegotiationMessage, life: str) -> None:
        """In a thread of its own: a neighbour that hangs keeps nobody waiting."""
        try:
            contact = self._catalog.contacts().get(message.receiver)
            if contact is None:
                return
            letter = Letter(
                sender=self._node, life=life, to=message.receiver, negotiation=message.as_record()
            )
            self._carrier.send(contact.address, letter)
            self._unreachable.discard(message.receiver)
        except PenstockError as error:
            if message.receiver not in self._unreachable:
                log.warning("%s", error)
            self._unreachable.add(message.receiver)
        except Exception:
            log.exception("a message to %s could not be sent", message.receiver)


def _not_done(instruction: TreeInstruction, why: str) -> MovesBegun | HandsChanged | None:
    match instruction:
        case BeginMoves(number):
            return MovesBegun(number, (), why)
        case ChangeHands(number):
            return HandsChanged(number, why)
        case _:
            return None


def negotiation_text(record: NegotiationRecord) -> str:
    """A negotiation in a line."""
    is_offer = record.kind == "offer"
    did = "offered" if is_offer else "asked for load"
    parts = []
    for peer in record.peers:
        moved = f"{', '.join(peer.moved)}: " if peer.moved else "nothing: "
        parts.append(f"{peer.node} {'took' if is_offer else 'gave'} {moved}{peer.why}")
    return f"at {record.utilisation:.0f} % {did}; {'; '.join(parts)}"
