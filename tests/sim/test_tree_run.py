"""The compiled simulation of trees says and moves the same as the protocol itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balance.hierarchy.trees import random_tree
from laws import tried
from penstock.balance.hierarchy.negotiation import Hierarchy
from penstock.balance.hierarchy.settings import Accept, HierarchySettings, TransferOrder
from penstock.balance.hierarchy.transfers import DownRule
from penstock.model.tree_network import TreeNetwork
from penstock.sim.tree_run import Loads, run_tree
from penstock.sim.tree_world import SizeChange, TreeWorld

_LENGTH_S = 60.0


def _sized(network: TreeNetwork, rng: np.random.Generator) -> TreeNetwork:
    mean = 50 * len(network.nodes.parents) / len(network.operators)
    return replace(
        network,
        operators=tuple(
            replace(operator, size=round(float(mean * rng.gamma(2.0, 0.5)), 2))
            for operator in network.operators
        ),
    )


def _loads(network: TreeNetwork, rng: np.random.Generator) -> Loads:
    count = int(rng.integers(0, 30))
    times_s = np.sort(rng.random(count) * _LENGTH_S)
    operators = rng.integers(len(network.operators), size=count)
    return Loads(times_s, operators, np.round(rng.random(count) * 25, 2))


@given(
    st.integers(0, 10**6),
    st.sampled_from(DownRule),
    st.sampled_from(Accept),
    st.sampled_from(TransferOrder),
    st.sampled_from([0.0, 2.0]),
    st.booleans(),
)
@tried(50)
def test_the_compiled_tree_does_what_the_protocol_does(
    seed: int,
    rule: DownRule,
    accept: Accept,
    order: TransferOrder,
    rest_periods: float,
    relay: bool,
) -> None:
    rng = np.random.default_rng(seed)
    network = _sized(random_tree(seed, nodes=int(rng.integers(2, 12)), operators=30), rng)
    loads = _loads(network, rng)
    settings = HierarchySettings(
        rule=rule, accept=accept, order=order, rest_periods=rest_periods, relay=relay
    )
    names = [operator.name for operator in network.operators]
    changes = [
        SizeChange(float(at_s), names[operator], float(size))
        for at_s, operator, size in zip(loads.times_s, loads.operators, loads.sizes, strict=True)
    ]
    world = TreeWorld(network, Hierarchy(settings), seed, changes=changes)
    found = run_tree(network, settings, loads, _LENGTH_S, seed=seed)
    nodes = list(network.nodes.parents)
    for at, until_s in enumerate(found.times_s):
        world.advance(until_s)
        utilisations = np.array(list(world.utilisations().values()))
        assert found.mean[at] == pytest.approx(utilisations.mean())
        assert found.deviation[at] == pytest.approx(utilisations.std(), abs=1e-6)
        assert found.overloaded[at] == (utilisations > 60).sum()
    assert [nodes[number] for number in found.assignment] == [
        world.placed.node_of(name) for name in names
    ]
    assert (found.messages, found.steps, found.moved) == (world.messages, world.steps, world.moved)


def test_without_a_protocol_nothing_moves() -> None:
    network = random_tree(1)
    found = run_tree(network, None, length_s=30.0)
    assert (found.messages, found.moved) == (0, 0) and len(found.times_s) == 15
