"""Composition in one transaction: the compiled loop against the plain rules; what is kept."""

from __future__ import annotations

from itertools import product
from math import inf, nan
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.share.admission import AdmissionSituation, judge
from penstock.share.at_once import AtOnce, best_graph
from penstock.share.projection import NodeLoad
from share.overlays import chain, diamond

pytestmark = pytest.mark.core

NODES = 12
LOADS = st.lists(st.sampled_from((0.0, 0.2, 0.5, 0.8, 0.95)), min_size=NODES, max_size=NODES)


@given(st.booleans(), LOADS, st.sampled_from((0.0, 0.5, 0.93)), st.sampled_from((0.06, 0.2, 5.0)))
@tried(30)
def test_the_best_graph_is_that_of_the_plain_rules(
    branches: bool, loads: list[float], link_load: float, limit_s: float
) -> None:
    """Every operator has three nodes of its own, so streams go one way over each link."""
    kinds = ("a", "b", "c", "d")
    plan = diamond(kinds, 0.1, limit_s) if branches else chain(*kinds, limit_s=limit_s)
    candidates = np.arange(NODES).reshape(4, 3)
    situation = AdmissionSituation(
        {str(node): NodeLoad(load) for node, load in enumerate(loads)},
        {frozenset((str(i), str(j))): link_load for i in range(NODES) for j in range(i)},
    )
    names = [operator.name for operator in plan.operators]
    plain = {}
    for nodes in product(*candidates.tolist()):
        verdict = judge(situation, plan, dict(zip(names, map(str, nodes), strict=True)))
        if verdict.ok:
            plain[nodes] = verdict
    inputs = np.full((4, 2), -1)
    for at, operator in enumerate(plan.operators):
        for slot, input in enumerate(operator.inputs):
            inputs[at, slot] = names.index(input)
    shares = np.array([(o.need, o.tau_s, o.bandwidth, o.sigma_s) for o in plan.operators])
    found, left_s, phi = best_graph(
        shares, inputs, candidates, np.full(4, nan), limit_s, np.array(loads),
        np.full(NODES, inf), np.full((NODES, NODES), link_load), np.zeros((NODES, NODES)),
    )  # fmt: skip
    if not plain:
        assert found[0] == -1
        return
    assert phi == pytest.approx(min(verdict.phi for verdict in plain.values()))
    chosen = plain[tuple(found.tolist())]
    assert left_s.max() == pytest.approx(chosen.time_s)


def system(nodes: int = 6, kinds: int = 4, seed: int = 1) -> AtOnce:
    rng = Random(seed)
    offered = {f"k{kind}": tuple(rng.sample(range(nodes), 3)) for kind in range(kinds)}
    return AtOnce(np.zeros((nodes, nodes)), offered, probing_ratio=1.0, seed=seed)


def test_what_is_shared_is_computed_once_and_stays_while_it_is_used() -> None:
    at_once = system()
    first = at_once.compose("q1", chain("k0", "k1", "k2"))
    second = at_once.compose("q2", chain("k0", "k1", "k3"))
    assert first is not None and second is not None
    assert second.reused == ("o1",)
    assert at_once.loads.sum() == pytest.approx(0.4)
    at_once.finish("q1")
    assert at_once.loads.sum() == pytest.approx(0.3)
    at_once.finish("q2")
    assert at_once.loads.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.abs(at_once.link_used).max() < 1e-12
    assert len(at_once) == 0 and (at_once.most_factor == inf).all()


def test_nobody_is_hurt_and_nothing_is_overbooked() -> None:
    at_once = system()
    rng = Random(5)
    limits: dict[str, float] = {}
    for at in range(300):
        kinds = [f"k{rng.randrange(4)}" for _ in range(rng.randint(1, 3))]
        plan = chain(*kinds, need=0.02, limit_s=rng.choice((0.05, 0.1, 0.4)))
        if at_once.compose(f"q{at}", plan) is not None:
            limits[f"q{at}"] = plan.limit_s
        if limits and rng.random() < 0.3:
            at_once.finish(limits.popitem()[0])
        assert (at_once.loads < 1).all()
        assert (1 / (1 - at_once.loads) <= at_once.most_factor + 1e-9).all()


def test_an_operator_nobody_offers_goes_beside_the_one_before() -> None:
    at_once = system()
    found = at_once.compose("q", chain("k0", "missing"))
    assert found is not None and found.nodes["o0"] == found.nodes["o1"]
    assert at_once.compose("r", chain("missing")) is None
