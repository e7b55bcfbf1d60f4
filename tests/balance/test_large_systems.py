"""Domains and groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.balance.domains import domains, in_domains
from penstock.balance.grouping import group_operators, in_groups
from penstock.balance.pairwise import one_way, redistribution
from penstock.balance.situation import Situation
from penstock.errors import InputError


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 3))
def test_domains_divide_the_nodes(nodes: int, size: int, turn: int) -> None:
    parts = domains(nodes, size, turn)
    assert sorted(np.concatenate(parts).tolist()) == list(range(nodes))
    assert max(map(len, parts)) <= size
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def _situation(seed: int, nodes: int = 6, operators: int = 36) -> Situation:
    rng = np.random.default_rng(seed)
    start = rng.integers(0, nodes, operators)
    return Situation.of(rng.uniform(0, 0.2, (operators, 5)), start, np.ones(nodes))


def test_one_domain_of_all_nodes_changes_nothing() -> None:
    situation = _situation(1)
    whole = redistribution(situation)
    assert in_domains(situation, 6, redistribution).moves == whole.moves


def test_nothing_leaves_its_domain() -> None:
    situation = _situation(2)
    plan = in_domains(situation, 2, redistribution)
    assert plan.moves
    assert all(move.source // 2 == move.target // 2 for move in plan.moves)


def test_homeless_operators_find_a_domain() -> None:
    situation = Situation.of(np.full((4, 2), 0.1), [0, 1, 2, -1], np.ones(3))
    assert (in_domains(situation, 2, one_way).assignment >= 0).all()


def test_domains_need_nodes() -> None:
    with pytest.raises(InputError, match=r"domains of 0 nodes\. Give at least one\."):
        domains(3, 0)


@given(st.integers(0, 1_000), st.floats(0, 0.5))
@tried(30)
def test_groups_keep_load_and_place_and_are_heavy_enough(seed: int, lightest: float) -> None:
    situation = _situation(seed)
    merged = group_operators(situation, lightest)
    assert np.array_equal(merged.situation.node_series, situation.node_series)
    places = merged.situation.assignment[merged.group]
    assert np.array_equal(places, situation.assignment)
    light = merged.situation.series.means < lightest
    per_node = np.bincount(merged.situation.assignment[light], minlength=6)
    assert per_node.max() <= 1


def test_members_of_a_group_move_together() -> None:
    situation = _situation(5)
    merged = group_operators(situation, 0.3)
    after = in_groups(situation, 0.3, redistribution).assignment
    for group in set(merged.group.tolist()):
        assert len(set(after[merged.group == group].tolist())) == 1
