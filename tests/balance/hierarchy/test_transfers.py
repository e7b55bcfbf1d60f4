"""Feasible transfers: the source's scenarios, and every set of operators tried on small trees."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balance.hierarchy.trees import random_tree
from laws import tried
from penstock.balance.hierarchy.transfers import (
    DownRule,
    PlacedOperators,
    Transfer,
    feasible_transfers,
)
from penstock.lang.abstract import parse_tree
from penstock.model.tree_network import TreeNetwork

Moves = set[tuple[str, str, frozenset[str]]]


def _moves(found: tuple[Transfer, ...]) -> Moves:
    moves = {(one.node, one.to, frozenset(one.operators)) for one in found}
    assert len(moves) == len(found), "a transfer is listed twice"
    return moves


def _is_fed(network: TreeNetwork, where: dict[str, str]) -> bool:
    """Whether every input passes where its operator is: climb from where it begins."""
    for operator in network.operators:
        for name in operator.inputs:
            node: str | None = where[name]
            while node is not None and node != where[operator.name]:
                node = network.nodes.parents[node]
            if node is None:
                return False
    return True


def _tried(
    network: TreeNetwork, where: dict[str, str], rule: DownRule
) -> Iterator[tuple[str, str, frozenset[str]]]:
    """For every operator and neighbour, the smallest set with it that may move there, by trial."""
    inputs = {operator.name: operator.inputs for operator in network.operators}
    for node in network.nodes.parents:
        own = [name for name in inputs if where[name] == node]
        sets = [set(some) for size in range(1, len(own) + 1) for some in combinations(own, size)]
        for to in network.nodes.neighbours(node):
            free = [some for some in sets if _is_fed(network, {**where, **dict.fromkeys(some, to)})]
            for operator in own:
                with_it = [some for some in free if operator in some]
                smallest = set.intersection(*with_it) if with_it else set()
                is_down = to != network.nodes.parents[node]
                narrow = rule is DownRule.NARROW and is_down
                if smallest and not (narrow and any(len(inputs[one]) > 1 for one in smallest)):
                    yield node, to, frozenset(smallest)


SEEDS = st.integers(0, 10**6)


@given(SEEDS, st.sampled_from(DownRule))
@tried(60)
def test_transfers_are_those_found_by_trying_every_set(seed: int, rule: DownRule) -> None:
    network = random_tree(seed, nodes=4, operators=9)
    expected = set(_tried(network, dict(network.origins), rule))
    assert _moves(feasible_transfers(network, rule)) == expected


@given(SEEDS, st.sampled_from(DownRule))
@tried(60)
def test_after_any_sequence_of_transfers_every_operator_receives_its_inputs(
    seed: int, rule: DownRule
) -> None:
    network, rng = random_tree(seed, operators=9), np.random.default_rng(seed)
    placed, where = PlacedOperators(network, rule), dict(network.origins)
    for _ in range(30):
        choices = [
            transfer for node in network.nodes.parents for transfer in placed.transfers(node)
        ]
        if not choices:
            break
        chosen = choices[rng.integers(len(choices))]
        placed.move(chosen.operators, chosen.to)
        where |= dict.fromkeys(chosen.operators, chosen.to)
        assert (
            _is_fed(network, where)
            and placed.find_misplaced(where.keys() - _sources(network)) is None
        )
    # What was kept from step to step is what one would find afresh.
    kept = tuple(transfer for node in network.nodes.parents for transfer in placed.transfers(node))
    assert _moves(kept) == set(_tried(network, where, rule))


def _sources(network: TreeNetwork) -> set[str]:
    return {stream.name for stream in network.inputs}


@given(SEEDS)
@tried(25)
def test_disjoint_transfers_of_a_node_do_not_disturb_each_other(seed: int) -> None:
    network = random_tree(seed, nodes=4, operators=14)
    for node in network.nodes.parents:
        found = PlacedOperators(network, DownRule.WIDE).transfers(node)
        for first, second in combinations(found, 2):
            if not set(first.operators) & set(second.operators):
                both = PlacedOperators(network, DownRule.WIDE)
                both.move(first.operators, first.to)
                both.move(second.operators, second.to)
                assert both.find_misplaced((*first.operators, *second.operators)) is None


def _listed(text: str, rule: DownRule = DownRule.NARROW) -> list[str]:
    found = feasible_transfers(parse_tree(text, "tree.yaml"), rule)
    return [f"{'+'.join(one.operators)} {one.node}->{one.to}" for one in found]


LINE = "nodes: {p: {}, v: {parent: p}, c: {parent: v}, d: {parent: v}, e: {parent: c}}\n"


@pytest.mark.parametrize(
    ("what", "operators", "expected"),
    [
        ("one operator", "A: {inputs: [m], size: 1, node: v}", ["A v->p", "A v->c"]),
        (
            "two that depend",
            "A: {inputs: [m], size: 1, node: v}, B: {inputs: [A], size: 1, node: v}",
            ["A+B v->p", "A v->c", "B v->p", "A+B v->c"],
        ),
        ("several children", "A: {inputs: [m, n], size: 1, node: v}", ["A v->p"]),
        ("one input twice", "A: {inputs: [m, m], size: 1, node: v}", ["A v->p"]),
        (
            "a fork",
            "A: {inputs: [m], size: 1, node: v}, B: {inputs: [A], size: 1, node: v}, "
            "C: {inputs: [A], size: 1, node: v}",
            ["A+B+C v->p", "A v->c", "B v->p", "A+B v->c", "C v->p", "A+C v->c"],
        ),
        ("a source here", "A: {inputs: [h], size: 1, node: v}", ["A v->p"]),
        (
            "an operator on the way",
            "A: {inputs: [h], size: 1, node: v}, B: {inputs: [A], size: 1, node: v}",
            ["A+B v->p", "B v->p"],
        ),
        ("a producer two below", "A: {inputs: [k], size: 1, node: v}", ["A v->p", "A v->c"]),
        ("the root", "A: {inputs: [m], size: 1, node: p}", ["A p->v"]),
        ("a leaf", "A: {inputs: [n], size: 1, node: d}", ["A d->v"]),
        (
            "a reader above stays",
            "A: {inputs: [m], size: 1, node: v}, B: {inputs: [A], size: 1, node: p}",
            ["B p->v", "A v->p", "A v->c"],
        ),
    ],
)
def test_scenarios_of_the_source(what: str, operators: str, expected: list[str]) -> None:
    sources = "inputs: {m: {node: c}, n: {node: d}, h: {node: v}, k: {node: e}}\n"
    assert _listed(f"{LINE}{sources}operators: {{{operators}}}") == expected, what


def test_the_wide_rule_lets_operators_with_several_inputs_down() -> None:
    text = f"""{LINE}inputs: {{m: {{node: c}}, k: {{node: e}}, n: {{node: d}}}}
operators:
  J: {{inputs: [m, k], size: 1, node: v}}
  B: {{inputs: [J, m], size: 1, node: v}}
  X: {{inputs: [J, n], size: 1, node: v}}"""
    assert _listed(text) == ["J+B+X v->p", "B v->p", "X v->p"]
    assert _listed(text, DownRule.WIDE) == [
        "J+B+X v->p", "J v->c", "B v->p", "J+B v->c", "X v->p",
    ]  # fmt: skip


def test_only_nodes_whose_operators_changed_are_computed_again() -> None:
    network = random_tree(3)
    placed = PlacedOperators(network)
    before = {node: placed.transfers(node) for node in network.nodes.parents}
    move = next(one for found in before.values() for one in found)
    placed.move(move.operators, move.to)
    for node in network.nodes.parents:
        is_kept = placed.transfers(node) is before[node]
        assert is_kept == (node not in (move.node, move.to))
