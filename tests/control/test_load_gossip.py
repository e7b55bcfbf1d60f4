"""Nodes learn each other's load however bad the links, and never take old word for new."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.load_gossip import (
    GossipState,
    Load,
    LoadGossip,
    LoadMeasured,
    LoadsHeard,
    TellLoads,
    Word,
)
from penstock.model.protocol import Tick
from penstock.sim.links import Links
from penstock.sim.protocol_world import ProtocolWorld

GOSSIP = LoadGossip()
RNG = np.random.default_rng(0)


def arrival(message: TellLoads) -> tuple[str, LoadsHeard]:
    return message.to, LoadsHeard(message.words)


def overlay(count: int, links: Links, seed: int) -> tuple[ProtocolWorld[GossipState], list[str]]:
    """Nodes that measure themselves every two seconds; node i uses i parts of its memory at i s."""
    names = [f"n{index}" for index in range(count)]
    states = {name: GossipState(name) for name in names}
    world = ProtocolWorld(GOSSIP, states, arrival, links, seed)
    for at_s in np.arange(0.0, 60.0, 2.0):
        for name in names:
            load = Load(0.5, int(1_000 * at_s))
            world.give(float(at_s), name, LoadMeasured(load, f"{name}-1", tuple(names)))
    return world, names


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(2, 12),
    loss=st.floats(0.0, 0.3),
    doubling=st.floats(0.0, 0.3),
    longest_s=st.floats(0.02, 3.0),
    seed=st.integers(0, 2**31),
)
def test_all_know_of_all_whatever_the_links_do(
    count: int, loss: float, doubling: float, longest_s: float, seed: int
) -> None:
    world, names = overlay(count, Links(0.01, longest_s, loss, doubling), seed)
    world.run(50.0)
    for name in names:
        state = world.states[name]
        assert set(state.heard) == set(names) - {name}
        for word, heard_s in state.heard.values():
            # What was measured when is what is said; its age is true but for the way.
            measured_s = word.load.memory_bytes / 1_000
            age_s = word.age_s + world.now_s - heard_s
            assert age_s <= world.now_s - measured_s + 1e-6
            assert age_s < 30.0


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [overlay(5, Links(0.01, 1.0, 0.2, 0.2), seed=7)[0] for _ in range(2)]
    for world in runs:
        world.run(30.0)
    assert runs[0].states == runs[1].states
    assert runs[0].messages == runs[1].messages > 0


def test_a_node_tells_a_few_at_a_time() -> None:
    world, _ = overlay(12, Links(), seed=1)
    world.run(10.0)
    assert world.messages <= 12 * GOSSIP.told_at_once * 11


def hear(state: GossipState, word: Word, now_s: float) -> GossipState:
    return GOSSIP.handle(state, LoadsHeard({"b": word}), now_s, RNG).state


@pytest.mark.parametrize(
    ("later", "is_news"),
    [
        (Word("b-1", 4, Load(0.9, 1), 0.0), True),
        (Word("b-1", 3, Load(0.9, 1), 0.0), False),
        (Word("b-1", 2, Load(0.9, 1), 0.0), False),
        (Word("b-2", 0, Load(0.9, 1), 0.5), True),
        (Word("b-0", 9, Load(0.9, 1), 7.0), False),
        (Word("b-1", 4, Load(0.9, 1), 61.0), False),
    ],
    ids=["newer", "the same again", "late", "a new life", "a former life", "too old"],
)
def test_what_is_news(later: Word, is_news: bool) -> None:
    state = hear(GossipState("a"), Word("b-1", 3, Load(0.1, 1), 1.0), now_s=10.0)
    heard = hear(state, later, now_s=12.0).heard["b"][0]
    assert (heard.load.cpu == 0.9) == is_news


def test_old_word_is_forgotten_and_nobody_hears_of_himself() -> None:
    state = hear(GossipState("a"), Word("b-1", 3, Load(0.1, 1), 1.0), now_s=10.0)
    state = GOSSIP.handle(
        state, LoadsHeard({"a": Word("a-1", 1, Load(1, 1), 0.0)}), 11.0, RNG
    ).state
    assert GOSSIP.ages_s(state, 12.0) == {"b": 3.0}
    assert GOSSIP.handle(state, Tick(), 70.0, RNG).state.heard == {}
