"""The world of nodes that die and hang, with neighbours that negotiate in it.

Every node has a real :class:`Negotiator`. Messages are lost, doubled, late and in another order;
what a node has decided is carried out later, or never, and it may not hear what came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from control.memory_catalog import MemoryCatalog
from control.world import _EVENTS as WORLD_EVENTS
from control.world import Choose, Process, UnsafeError, World
from penstock.balance.hierarchy.messages import NegotiationMessage
from penstock.balance.hierarchy.settings import HierarchySettings
from penstock.balance.hierarchy.transfers import DownRule
from penstock.control.decisions import decide
from penstock.control.live_tree import check_plan
from penstock.control.negotiator import (
    BeginMoves,
    ChangeHands,
    EndMoves,
    HandsChanged,
    MovesBegun,
    Negotiator,
    SendMessage,
    TellNegotiation,
    TreeInstruction,
)
from penstock.control.records import NodeRecord
from penstock.control.tree_situation import TreeSituation
from penstock.control.tree_sizes import MeasuredSizes
from penstock.errors import InputError
from penstock.model.node_tree import NodeTree
from penstock.place.tree_placing import TreeWiring

TREE = NodeTree({"a": None, "b": "a", "c": "a"})
WIRING = TreeWiring(
    TREE,
    {"m": {}, "k": {}, "q": {"m": "m"}, "r": {"q": "q"}, "s": {"k": "k"}},
    {"m": "b", "k": "c"},
)
SETTINGS = HierarchySettings(
    lower=30, upper=60, period_s=1.0, answer_s=1.5, hold_s=4.0, rule=DownRule.WIDE, rest_periods=1
)
_MOSTLY = (True,) * 6 + (False,)
_SIZES = (5.0, 20.0, 40.0, 50.0)


class TreeCatalog(MemoryCatalog):
    """Nodes keep their parents, whoever joins."""

    def join(self, node: NodeRecord, former: Any, now_s: float) -> bool:
        return super().join(replace(node, parent=TREE.parents[node.name]), former, now_s)


class NegotiatingWorld(World):
    """Three nodes in a tree; q and r come from below b, s from below c."""

    def __init__(
        self,
        choose: Choose,
        catalog: Callable[..., MemoryCatalog] = TreeCatalog,
        wiring: TreeWiring = WIRING,
    ) -> None:
        self.negotiators: dict[int, tuple[str, Negotiator]] = {}
        self.wanted: list[tuple[Process, TreeInstruction]] = []
        self.mail: list[tuple[str, str, NegotiationMessage]] = []
        self.told: list[TellNegotiation] = []
        self.wiring = wiring
        super().__init__(choose, units=3, nodes=3, decide=self._decides, catalog=catalog)
        for name, unit in self.catalog.units.items():
            self.catalog.units[name] = replace(unit, pinned=None)
        self.sizes = {name: choose(_SIZES) for name in self.catalog.units}
        self._rng = np.random.default_rng(choose(range(1_000)))

    def _decides(self, *known: Any) -> Any:
        return decide(*known, self.wiring, is_negotiated=True)

    def step(self) -> None:
        self.choose(_EVENTS)(self)
        self.check_safety()

    def somebody_asks_for_a_move(self) -> None:
        before = dict(self.catalog.moves)
        super().somebody_asks_for_a_move()
        for number in self.catalog.moves.keys() - before.keys():
            move = self.catalog.moves[number]
            try:
                moves = [*before.values()]
                check_plan(self.wiring, self.catalog.units, moves, {move.unit: move.target})
            except InputError:
                del self.catalog.moves[number]

    def somebody_drops_a_unit(self) -> None:
        """Only what nobody reads."""
        name = self.choose(["r", "s", *[None] * 10])
        if name is not None:
            self.catalog.drop(name)

    # Neighbours.

    def somebody_looks_around(self) -> None:
        for process in self._one_of(self.awake()):
            self._look_around(process)

    def _look_around(self, process: Process) -> None:
        own, life = self.catalog.nodes.get(process.node), process.state.lease.life
        if life is None or own is None or own.incarnation != life:
            return
        situation = TreeSituation(
            process.node,
            life,
            self.wiring,
            dict(self.catalog.units),
            dict(self.catalog.nodes),
            tuple(move for move in self.catalog.moves.values() if move.is_open),
            MeasuredSizes(dict(self.sizes), dict(self.sizes)),
            catalog_s=self.now_s,
        )
        known_life, negotiator = self.negotiators.get(id(process), ("", None))
        if negotiator is None or known_life != life:
            incarnation = int(1_000 * self.now_s) + 1
            negotiator = Negotiator(
                process.node, SETTINGS, self._rng, incarnation, situation, self.now_s
            )
            self.negotiators[id(process)] = life, negotiator
        self._want(process, negotiator.observe(situation, self.now_s))
        self._want(process, negotiator.tick(self.now_s))

    def _want(self, process: Process, instructions: list[TreeInstruction]) -> None:
        self.wanted += [(process, instruction) for instruction in instructions]

    def some_neighbour_acts(self) -> None:
        """What was decided is done some time later."""
        ready = [one for one in self.wanted if not one[0].is_frozen]
        for one in self._one_of(ready):
            self.wanted.remove(one)
            self._do(*one, is_done=self.choose(_MOSTLY), is_heard=self.choose(_MOSTLY))

    def _do(
        self, process: Process, wanted: TreeInstruction, is_done: bool = True, is_heard: bool = True
    ) -> None:
        if process not in self._all():
            return  # It has died meanwhile.
        life, negotiator = self.negotiators[id(process)]
        match wanted:
            case SendMessage(message):
                copies = 1 if is_done and is_heard else self.choose((0, 2))
                self.mail += [(process.node, life, message)] * copies
            case BeginMoves(number, step, numbers, reason):
                rows = [
                    {"unit": unit, "source": step.source, "target": step.target, "reason": reason,
                     "state": "preparing", "created_s": self.now_s, "numbers": numbers}
                    for unit in step.units
                ]  # fmt: skip
                begun, why = [], "the catalog was away"
                if is_done:
                    begun, why = self.catalog.begin_hand_over(step, self.wiring, rows, self.now_s)
                if is_heard:
                    answer = MovesBegun(number, tuple(begun), why)
                    self._want(process, negotiator.answer(answer, self.now_s))
            case ChangeHands(number, step, moves):
                why = "the catalog was away"
                if is_done:
                    why = self.catalog.hand_over(step, self.wiring, moves, self.now_s)
                if not is_heard:
                    why = why or "the answer was lost"
                self._want(process, negotiator.answer(HandsChanged(number, why), self.now_s))
            case EndMoves(moves, error) if is_done:
                for move in moves:
                    state = "failed" if error else "done"
                    self.catalog.change_move(move, state=state, error=error)
            case TellNegotiation():
                self.told.append(wanted)

    def some_message_arrives(self) -> None:
        for letter in self._one_of(self.mail):
            if self.choose(_MOSTLY):
                self.mail.remove(letter)
            if self.choose(_MOSTLY):
                self._deliver(*letter)

    def _deliver(self, sender: str, life: str, message: NegotiationMessage) -> None:
        known = self.catalog.nodes.get(sender)
        if known is None or known.incarnation != life or not known.is_alive(self.now_s):
            return  # The server refuses it.
        process = self.processes.get(message.receiver)
        if process is None or process.is_frozen or id(process) not in self.negotiators:
            return
        _, negotiator = self.negotiators[id(process)]
        self._want(process, negotiator.hear(sender, message, self.now_s))

    def everybody_is_quick_for_once(self) -> None:
        for process in self.awake():
            self.tick(process)
            self.let_work(process)
            self._look_around(process)
        for _ in range(self.choose(range(40))):
            self.some_neighbour_acts()
            self.some_message_arrives()

    def some_load_changes(self) -> None:
        self.sizes[self.choose([*self.sizes])] = self.choose(_SIZES)

    # In peace.

    def settle(self) -> None:
        # Some streams pass the dead ones only.
        for name, process in self.processes.items():
            if process is None:
                self.boot(name)
        self.wanted = [one for one in self.wanted if one[0] in self._all()]
        super().settle()

    def pass_quietly(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            super().pass_quietly(min(1.5, until_s - self.now_s))
            for process in self.awake():
                self._look_around(process)
            self._let_them_talk()

    def _let_them_talk(self) -> None:
        for _ in range(500):
            if self.wanted:
                process, wanted = self.wanted.pop(0)
                if not process.is_frozen:
                    self._do(process, wanted)
            elif self.mail:
                self._deliver(*self.mail.pop(0))
            else:
                return
            self.check_safety()
        raise UnsafeError(self.tell_problem("they never stop talking"))

    def check_settled(self) -> None:
        super().check_settled()
        places = {name: unit.node for name, unit in self.catalog.units.items()}
        for name, unit in self.catalog.units.items():
            if unit.is_up and unit.state != "finished" and not unit.is_dropped:
                missing = self.wiring.find_missing(name, str(unit.node), places)
                if missing is not None and unit.node in self.processes:
                    raise UnsafeError(self.tell_problem(f"{name} on {unit.node} misses {missing}"))

    def _should_have_returned(self, unit: Any) -> bool:
        return False  # That is left to the neighbours.


_RARE = (World.some_unit_ends, World.somebody_drops_a_unit, World.everybody_is_late)
_EVENTS: tuple[Callable[[NegotiatingWorld], None], ...] = (
    *[event for event in WORLD_EVENTS if event not in _RARE],
    World.some_unit_ends,
    World.everybody_is_late,
    *[NegotiatingWorld.somebody_looks_around] * 80,
    *[NegotiatingWorld.some_neighbour_acts] * 250,
    *[NegotiatingWorld.some_message_arrives] * 250,
    *[NegotiatingWorld.everybody_is_quick_for_once] * 150,
    *[NegotiatingWorld.some_load_changes] * 60,
    *[World.time_passes] * 120,
)
