"""Negotiations in a world of nodes that die, hang and come back at the worst moments."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from control.negotiating_world import NegotiatingWorld

STEPS = 800


def lived(world: NegotiatingWorld, steps: int = STEPS) -> NegotiatingWorld:
    for _ in range(steps):
        world.step()
    world.settle()
    world.check_settled()
    return world


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, STEPS))
def test_one_owner_at_a_time_and_in_the_end_everything_runs_and_is_fed(
    seed: int, steps: int
) -> None:
    lived(NegotiatingWorld(random.Random(seed).choice), steps)


def test_the_world_is_lively() -> None:
    worlds = [lived(NegotiatingWorld(random.Random(seed).choice)) for seed in range(25)]
    moves = [
        move for world in worlds for move in world.catalog.moves.values() if move.by == "neighbours"
    ]
    assert sum(move.state == "done" for move in moves) > 5
    assert any(move.state == "failed" for move in moves)
    assert {move.target for move in moves} >= {"a", "b"}
    assert any(world.told for world in worlds)
