"""Joins and varying selectivities as linear functions of as few variables as possible."""

import math

import pytest

from load.abstract_networks import network_of
from penstock.load.linear import LoadModel, load_model
from penstock.model.abstract import AbstractOperator


def op(name: str, reads: str, cost: float = 1.0, **more: object) -> AbstractOperator:
    return AbstractOperator(name, tuple(reads.split()), cost, **more)  # type: ignore[arg-type]


def join(name: str, reads: str, cost: float = 1.0, **more: object) -> AbstractOperator:
    return op(name, reads, cost, **{"kind": "join", "window_s": 10.0, "selectivity": 0.1, **more})


def names(model: LoadModel) -> list[str]:
    return [variable.name for variable in model.variables]


def test_a_chain_is_cut_behind_a_varying_operator() -> None:
    """Example 8 of the source."""
    model = load_model(
        network_of(
            [op("a", "A"), op("u", "a", 2, varying=True), op("c", "u", 3), op("d", "c")], "A"
        )
    )
    assert names(model) == ["A", "u"]
    assert model.coefficients.tolist() == [[1, 0], [2, 0], [0, 3], [0, 1]]


def test_a_join_is_linear_in_its_output() -> None:
    """Example 9 of the source: three variables, not four; the join's load is (c/s) r3."""
    model = load_model(
        network_of(
            [
                op("o1", "A"),
                op("o2", "o1"),
                op("o3", "B"),
                op("o4", "o3"),
                join("o5", "o2 o4", 0.003),
                op("o6", "o5", 7),
            ]
        )
    )
    assert names(model) == ["A", "B", "o5"]
    assert model.coefficients[4] == pytest.approx([0, 0, 0.003 / 0.1])
    assert model.coefficients[5] == pytest.approx([0, 0, 7])
    assert model.variables[2].typical == pytest.approx(0.1 * 10 * 10 * 10)


def test_joins_of_the_same_streams_share_a_variable() -> None:
    model = load_model(
        network_of(
            [
                op("f", "A", selectivity=0.5),
                op("g", "B"),
                join("j1", "A B", 1.0),
                join("j2", "B f", 1.0, window_s=30.0),
                op("end", "j2"),
            ]
        )
    )
    assert names(model) == ["A", "B", "j1"]
    # j2 meets 1.5 times the pairs of j1.
    assert model.coefficients[:, 2] == pytest.approx([0, 0, 10, 15, 1.5])


def test_joins_of_different_streams_do_not_share() -> None:
    model = load_model(network_of([join("j1", "A B"), join("j2", "A A"), join("j3", "B B")]))
    assert names(model) == ["j1", "j2", "j3"]


def test_a_join_that_lets_nothing_through_is_linear_in_its_pairs() -> None:
    model = load_model(network_of([op("a", "A"), op("b", "B"), join("j", "A B", 2, selectivity=0)]))
    assert names(model) == ["A", "B", "pairs of j"]
    assert model.coefficients[2].tolist() == [0, 0, 2]


def test_a_join_of_varying_selectivity_needs_two_variables_if_it_is_read() -> None:
    read = [op("a", "A"), op("b", "B"), join("j", "A B", varying=True), op("c", "j")]
    assert names(load_model(network_of(read))) == ["A", "B", "pairs of j", "j"]
    assert names(load_model(network_of(read[:3]))) == ["A", "B", "pairs of j"]


def test_a_varying_operator_nobody_reads_needs_no_variable() -> None:
    assert names(load_model(network_of([op("a", "A", selectivity=None)], "A"))) == ["A"]


def test_varying_streams_that_only_meet_in_a_union_are_one_variable() -> None:
    operators = [op("u", "A", varying=True), op("v", "B", varying=True), op("both", "u v", 3)]
    assert names(load_model(network_of(operators))) == ["A", "B", "u + v"]
    assert load_model(network_of(operators)).coefficients[2].tolist() == [0, 0, 3]
    # If moving them costs something, each matters by itself.
    assert len(load_model(network_of(operators, transfer=0.1)).variables) == 4


def test_values_of_new_variables() -> None:
    operators = [op("u", "A", selectivity=None), op("v", "B", selectivity=0.5, varying=True)]
    model = load_model(network_of([*operators, op("x", "u"), op("y", "v", 2)]))
    assert math.isnan(model.variables[2].typical)
    assert model.variables[3].typical == 5.0
