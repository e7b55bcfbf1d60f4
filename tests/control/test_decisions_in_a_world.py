"""Decisions in a world of nodes that die, hang and come back at the worst moments."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control.memory_catalog import MemoryCatalog
from control.mutants import CATALOGS, MUTANTS, NOTICED
from control.world import LEASE_S, UnsafeError, World
from penstock.control.decisions import Assign, ChangeMove, Instruction, decide
from penstock.control.node_state import NodeState
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.returning import (
    AWAITED_AT_START_S,
    AWAITED_WITH_PINS_S,
    RETURNS_AT_MOST,
    BringBack,
)

STEPS = 200
_SIZES = ((1, 2), (2, 3), (3, 4))
"""Units and nodes: in the small worlds more happens to each."""


def lived(world: World, steps: int) -> World:
    """Everything that must hold at every moment is checked on the way, the rest at the end."""
    for _ in range(steps):
        world.step()
    world.settle()
    world.check_settled()
    return world


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    steps=st.integers(0, STEPS),
    units=st.integers(1, 3),
    nodes=st.integers(1, 4),
)
def test_one_owner_at_a_time_and_in_the_end_everything_runs(
    seed: int, steps: int, units: int, nodes: int
) -> None:
    lived(World(random.Random(seed).choice, units, nodes), steps)


def test_the_world_is_lively() -> None:
    """The checks above mean something: moves are done and given up, units fail, and so on."""
    worlds = [lived(World(random.Random(seed).choice), 3 * STEPS) for seed in range(60)]
    moves = [(move.state, move.error) for world in worlds for move in world.catalog.moves.values()]
    for reason in ("fell silent", "meanwhile", "no memory", "is being dropped"):
        assert any(state == "failed" and reason in error for state, error in moves)
    assert sum(state == "done" for state, _ in moves) > 60
    epochs = [unit.epoch for world in worlds for unit in world.catalog.units.values()]
    assert max(epochs) > 5
    story = "\n".join(line for world in worlds for line in world.story)
    for event in (
        "dies",
        "ends",
        "hangs",
        "comes back",
        "is replaced",
        "finishes",
        "dropped",
        "had stopped it",
    ):
        assert event in story
    assert "brings" in story
    returned = [
        move for world in worlds for move in world.catalog.moves.values() if move.by == "return"
    ]
    assert sum(move.state == "done" for move in returned) > 3


def test_a_clean_restart_leaves_everything_where_it_was() -> None:
    """Whichever node is there first, and however long the others take, within reason."""
    for seed in range(20):
        rng = random.Random(seed)
        world = World(rng.choice, units=3)
        world.settle()
        before = {name: unit.node for name, unit in world.catalog.units.items()}
        world.the_system_is_restarted()
        names = list(world.processes)
        for name in rng.sample(names, len(names)):
            world.pass_quietly(rng.uniform(0.0, AWAITED_AT_START_S / 4))
            world.boot(name)
        world.settle()
        world.check_settled()
        assert {name: unit.node for name, unit in world.catalog.units.items()} == before


def test_what_failed_over_goes_back_but_not_for_ever_to_a_node_that_flaps() -> None:
    world = World(random.Random(1).choice, units=1, nodes=2)
    world.catalog.units["q"] = replace(world.catalog.units["q"], pinned="b")
    world.settle()
    assert world.catalog.units["q"].node == "b"
    for _ in range(10):
        world.processes["b"] = None
        world.pass_quietly(LEASE_S + AWAITED_WITH_PINS_S + 10)
        assert world.catalog.units["q"].node == "a"
        world.boot("b")
        world.settle()
    returns = [move for move in world.catalog.moves.values() if move.by == "return"]
    assert len(returns) == RETURNS_AT_MOST
    assert (world.catalog.units["q"].node, world.catalog.units["q"].belongs) == ("a", "b")


def test_a_repeated_decision_does_no_harm() -> None:
    """Whatever is decided twice from what was seen once is carried out once."""
    for seed in range(20):
        world = World(random.Random(seed).choice)
        for _ in range(40):
            world.step()
        world.a_controller_looks()
        world.plans[1][:] = world.plans[0][:] = world.plans[0] or world.plans[1]
        before = {name: unit.epoch for name, unit in world.catalog.units.items()}
        for plan in world.plans:
            for instruction in plan:
                world.catalog.carry_out(instruction, world.now_s)
        assert all(unit.epoch <= before[name] + 1 for name, unit in world.catalog.units.items())


Decide = Callable[
    [Sequence[UnitRecord], Sequence[NodeRecord], Sequence[MoveRecord], float, float],
    list[Instruction],
]


def hasty(
    units: Sequence[UnitRecord],
    nodes: Sequence[NodeRecord],
    moves: Sequence[MoveRecord],
    now_s: float,
    began_s: float,
) -> list[Instruction]:
    """Hands on what the owner before the last may be running still."""
    return decide([replace(unit, previous=None) for unit in units], nodes, moves, now_s, began_s)


def without(kind: type[Instruction], word: str) -> Decide:
    """Decisions without those in which ``word`` occurs."""

    def decided(
        units: Sequence[UnitRecord],
        nodes: Sequence[NodeRecord],
        moves: Sequence[MoveRecord],
        now_s: float,
        began_s: float,
    ) -> list[Instruction]:
        made = decide(units, nodes, moves, now_s, began_s)
        return [one for one in made if not (isinstance(one, kind) and word in str(one))]

    return decided


@pytest.mark.parametrize(
    ("decide", "noticed"),
    [
        (hasty, "is run by"),
        (without(Assign, "fell silent"), "does not run"),
        (without(Assign, "started again"), "does not run"),
        (without(Assign, "had stopped it"), "does not run"),
        (without(BringBack, "is back"), "has not come back"),
        (without(ChangeMove, "state='failed'"), "is still open"),
        (without(ChangeMove, "state='done'"), "is still open"),
    ],
    ids=[
        "hasty",
        "no failover",
        "no restart",
        "no new epoch",
        "no return",
        "no bad end",
        "no good end",
    ],
)
def test_broken_decisions_are_noticed(decide: Decide, noticed: str) -> None:
    assert_noticed(noticed, decide=decide)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.__name__ for mutant in MUTANTS])
def test_broken_nodes_are_noticed(mutant: type[NodeState]) -> None:
    assert_noticed(NOTICED[mutant], node_state=mutant)


@pytest.mark.parametrize("mutant", CATALOGS, ids=[mutant.__name__ for mutant in CATALOGS])
def test_what_the_catalog_refuses_must_be_refused(mutant: type[MemoryCatalog]) -> None:
    assert_noticed("", catalog=mutant)


def assert_noticed(noticed: str, **broken: Any) -> None:
    """Some course of events, of all that are tried, shows what is broken."""

    def problem(seed: int) -> str | None:
        try:
            lived(World(random.Random(seed).choice, *_SIZES[seed % 3], **broken), 2 * STEPS)
        except UnsafeError as error:
            return str(error)
        return None

    found = (problem(seed) for seed in range(1_000))
    assert any(text is not None and noticed in text for text in found)
