"""Small trees, every order in which messages, ticks and time can come, with losses and doubles.

States are explored one by one, each once. In every state that can be reached the loads are within
what was agreed, nobody asks for a change that cannot be, and every negotiation ends by itself.
``PENSTOCK_EXAMPLES=10000`` goes further.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from balance.hierarchy import mutants
from penstock.balance.hierarchy.instructions import ChangeOwner, ChangeRecorded, Observed
from penstock.balance.hierarchy.messages import NegotiationMessage
from penstock.balance.hierarchy.negotiation import Hierarchy
from penstock.balance.hierarchy.ownership import Ownership
from penstock.balance.hierarchy.settings import HierarchySettings
from penstock.balance.hierarchy.state import HeldOperator, LocalView, NegotiatingNode
from penstock.balance.hierarchy.transfers import PlacedOperators, size_of
from penstock.lang.abstract import parse_tree
from penstock.model.protocol import Reaction, Tick
from penstock.model.tree_network import TreeNetwork

SETTINGS = HierarchySettings(period_s=1_000, answer_s=1, hold_s=2, rest_periods=0.0)


class _Half:
    def random(self) -> float:
        return 0.5


RNG: Any = _Half()


@dataclass(frozen=True)
class Situation:
    """Everything there is at one moment."""

    now_s: int
    nodes: tuple[NegotiatingNode, ...]
    flying: tuple[NegotiationMessage, ...]
    owners: tuple[tuple[str, str, int], ...]
    losses: int
    doubles: int


class Explorer:
    """Follows every way from the first situation on."""

    def __init__(
        self, network: TreeNetwork, protocol: Hierarchy, asking: set[str], last_s: int
    ) -> None:
        self.network, self.protocol, self.last_s = network, protocol, last_s
        self.sizes = {operator.name: operator.size for operator in network.operators}
        self.moved: set[tuple[tuple[str, str, int], ...]] = set()
        owners = tuple((operator.name, operator.node, 0) for operator in network.operators)
        nodes = tuple(
            NegotiatingNode(
                name,
                network.nodes.neighbours(name),
                0,
                self.view(name, self.record(owners)),
                0.0 if name in asking else 1e6,
            )
            for name in network.nodes.parents
        )
        self.first = Situation(0, nodes, (), owners, 0, 0)

    def record(self, owners: tuple[tuple[str, str, int], ...]) -> Ownership:
        record = Ownership(PlacedOperators(self.network))
        for name, node, epoch in owners:
            if record.placed.node_of(name) != node:
                record.placed.move((name,), node)
            record._epochs[name] = epoch
        return record

    def view(self, node: str, record: Ownership) -> LocalView:
        names = record.placed.on(node)
        held = tuple(HeldOperator(name, self.sizes[name], record.epoch(name)) for name in names)
        return LocalView(size_of(names, self.sizes), held, record.placed.transfers(node))

    def explore(self, losses: int, doubles: int) -> int:
        """How many situations there are; raises in the first that must not be."""
        start = replace(self.first, losses=losses, doubles=doubles)
        seen, left = {start}, [start]
        while left:
            for following in self.followers(left.pop()):
                if following not in seen:
                    seen.add(following)
                    left.append(following)
        return len(seen)

    def followers(self, now: Situation) -> Iterator[Situation]:
        if now.now_s < self.last_s:
            yield replace(now, now_s=now.now_s + 1)
        for at, node in enumerate(now.nodes):
            if self.protocol.wake_at_s(node) <= now.now_s:
                yield self.handled(now, at, Tick())
        names = [node.name for node in now.nodes]
        for message in dict.fromkeys(now.flying):
            rest = list(now.flying)
            rest.remove(message)
            landed = replace(now, flying=tuple(rest))
            yield self.handled(landed, names.index(message.receiver), message)
            if now.losses:
                yield replace(landed, losses=now.losses - 1)
            if now.doubles:
                kept = replace(now, doubles=now.doubles - 1)
                yield self.handled(kept, names.index(message.receiver), message)

    def handled(self, now: Situation, at: int, event: Any) -> Situation:
        reaction = self.protocol.handle(now.nodes[at], event, now.now_s, RNG)
        now = self._with(now, at, reaction)
        for step in reaction.instructions:
            if isinstance(step, ChangeOwner):
                now = self._changed(now, at, step)
        self._check_ends(now.nodes[at])
        return now

    def _with(self, now: Situation, at: int, reaction: Reaction[Any, Any, Any]) -> Situation:
        nodes = (*now.nodes[:at], reaction.state, *now.nodes[at + 1 :])
        flying = now.flying
        if reaction.messages:
            flying = tuple(sorted((*flying, *reaction.messages), key=repr))
        return replace(now, nodes=nodes, flying=flying)

    def _changed(self, now: Situation, at: int, step: ChangeOwner) -> Situation:
        assert step.source == now.nodes[at].name, "only the owner may give away"
        assert len(dict(step.epochs)) == len(step.epochs), "an operator is given twice"
        record = self.record(now.owners)
        assert now.now_s < step.until_s and record.change(step), "a change that cannot be"
        owners = tuple(
            (name, record.placed.node_of(name), record.epoch(name)) for name, _, _ in now.owners
        )
        self.moved.add(owners)
        left, reached = (
            size_of(record.placed.on(node), self.sizes) for node in (step.source, step.target)
        )
        assert left >= SETTINGS.target, "more than could be spared"
        assert reached <= SETTINGS.upper - SETTINGS.margin, "more than was agreed"
        now = replace(now, owners=owners)
        for number, node in enumerate(now.nodes):
            if node.name in (step.source, step.target):
                seen = Observed(self.view(node.name, record))
                reaction = self.protocol.handle(now.nodes[number], seen, now.now_s, RNG)
                now = self._with(now, number, reaction)
        told = ChangeRecorded(step.negotiation, step.target, step.portions)
        return self._with(now, at, self.protocol.handle(now.nodes[at], told, now.now_s, RNG))

    def _check_ends(self, node: NegotiatingNode) -> None:
        """Left alone, the node is free again, after at most two deadlines."""
        for _ in range(2):
            if node.negotiation is not None:
                at_s = self.protocol.wake_at_s(node)
                node = self.protocol.handle(node, Tick(), at_s, RNG).state
        assert node.negotiation is None, "a negotiation that never ends"


@dataclass(frozen=True)
class Search:
    """Where a search begins, who checks its load at once, how far it goes, and what must happen."""

    network: TreeNetwork
    asking: set[str]
    last_s: int
    ways: set[tuple[str, str]]
    losses: int = 0
    doubles: int = 0

    def explorer(self, protocol: Hierarchy) -> Explorer:
        return Explorer(self.network, protocol, self.asking, self.last_s)


def _tree(operators: str) -> TreeNetwork:
    head = "nodes: {p: {}, v: {parent: p}, c: {parent: v}}\ninputs: {m: {node: c}}\n"
    return parse_tree(f"{head}operators:\n{operators}", "tree.yaml")


FIGURE_12 = _tree("""
  A: {inputs: [m], size: 10, node: v}
  rest: {inputs: [m], size: 55, node: v}
  q: {inputs: [rest], size: 59, node: p}
  k: {inputs: [m], size: 40, node: c}
""")
TWO_OFFER_ONE = _tree("""
  a: {inputs: [m], size: 8, node: c}
  b: {inputs: [m], size: 60, node: c}
  d: {inputs: [m], size: 7, node: p}
  e: {inputs: [m], size: 57, node: p}
  f: {inputs: [m], size: 48, node: v}
""")
OFFER_MEETS_DEMAND = _tree("""
  a: {inputs: [m], size: 9, node: v}
  b: {inputs: [a], size: 6, node: v}
  r: {inputs: [m], size: 50, node: v}
  k: {inputs: [m], size: 30, node: c}
""")


ONE_IN_TWO_TRANSFERS = _tree("""
  a: {inputs: [m], size: 4, node: v}
  b: {inputs: [a], size: 6, node: v}
  r: {inputs: [m], size: 55, node: v}
  k: {inputs: [m], size: 30, node: c}
""")
SHOWS_MORE_THAN_IT_SPARES = _tree("""
  a: {inputs: [m], size: 4, node: p}
  b: {inputs: [m], size: 5, node: p}
  r: {inputs: [m], size: 47, node: p}
  x: {inputs: [m], size: 20, node: v}
  y: {inputs: [m], size: 45, node: c}
""")
SEARCHES: Mapping[str, Search] = {
    "one loss": Search(FIGURE_12, {"v"}, 2, {("v", "c")}, losses=1),
    "one double": Search(FIGURE_12, {"v"}, 1, {("v", "c")}, doubles=1),
    "two offer one": Search(TWO_OFFER_ONE, {"p", "c"}, 1, {("c", "v"), ("p", "v")}, losses=1),
    "offer meets demand": Search(OFFER_MEETS_DEMAND, {"v", "c"}, 1, {("v", "c")}),
    "shared": Search(ONE_IN_TWO_TRANSFERS, {"v"}, 1, {("v", "c")}),
    "demand": Search(SHOWS_MORE_THAN_IT_SPARES, {"v"}, 2, {("p", "v")}, losses=1, doubles=1),
}
LARGE: Mapping[str, Search] = {
    "losses and doubles": Search(FIGURE_12, {"v"}, 3, {("v", "c")}, losses=1, doubles=1),
    "two offer one": replace(SEARCHES["two offer one"], last_s=2, doubles=1),
    "offer meets demand": replace(SEARCHES["offer meets demand"], last_s=2),
}
"""Tens of thousands of situations each."""


@pytest.mark.parametrize("name", SEARCHES)
def test_every_order_of_events_is_safe(name: str) -> None:
    _check_all(SEARCHES[name])


@pytest.mark.skipif("PENSTOCK_EXAMPLES" not in os.environ, reason="half a minute")
@pytest.mark.parametrize("name", LARGE)
def test_every_order_of_more_events_is_safe(name: str) -> None:
    _check_all(LARGE[name])


def _check_all(search: Search) -> None:
    explorer = search.explorer(Hierarchy(SETTINGS))
    assert explorer.explore(search.losses, search.doubles) > 100
    before = {operator.name: operator.node for operator in search.network.operators}
    ways = {
        (before[name], node)
        for owners in explorer.moved
        for name, node, _ in owners
        if before[name] != node
    }
    assert search.ways <= ways, "the search never saw operators move"


@pytest.mark.parametrize(
    ("mutant", "name", "error"),
    [
        (mutants.NeverBusy, "two offer one", "more than was agreed"),
        (mutants.ShortPromise, "two offer one", "more than was agreed"),
        (mutants.NoDeadline, "one loss", "a negotiation that never ends"),
        (mutants.FillsUp, "one loss", "more than was agreed"),
        (mutants.DeploysBeforeConfirm, "offer meets demand", "only the owner may give away"),
    ],
)
def test_the_search_finds_what_is_wrong(mutant: type[Hierarchy], name: str, error: str) -> None:
    search = SEARCHES[name]
    with pytest.raises(AssertionError, match=error):
        search.explorer(mutant(SETTINGS)).explore(search.losses, search.doubles)


@pytest.mark.parametrize(
    ("choice", "name", "error"),
    [
        ("choose_given", "demand", "more than could be spared"),
        ("choose_fitting", "shared", "given twice"),
    ],
)
def test_the_search_finds_wrong_choices(
    choice: str, name: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutants.replace_choice(choice, monkeypatch)
    search = SEARCHES[name]
    with pytest.raises(AssertionError, match=error):
        search.explorer(Hierarchy(SETTINGS)).explore(search.losses, search.doubles)
