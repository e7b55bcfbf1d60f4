"""The linear load model: the worked example, streams between operators, units."""

import numpy as np
import pytest

from load.abstract_networks import network_of, worked_example
from penstock.errors import InputError
from penstock.load.feasible import node_coefficients, weights
from penstock.load.linear import load_model
from penstock.load.problem import placement_problem
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator


def test_the_worked_example() -> None:
    assert load_model(worked_example()).coefficients.tolist() == [[14, 0], [6, 0], [0, 9], [0, 7]]


@pytest.mark.parametrize(
    ("plan", "rows"),
    [
        ([0, 0, 1, 1], [[20, 0], [0, 16]]),
        ([0, 1, 0, 1], [[14, 9], [6, 7]]),
        ([0, 1, 1, 0], [[14, 7], [6, 9]]),
    ],
)
def test_the_worked_example_s_plans(plan: list[int], rows: list[list[float]]) -> None:
    problem = placement_problem(worked_example())
    assert node_coefficients(problem, np.array(plan)).tolist() == rows


def test_weights_of_the_worked_example() -> None:
    problem = placement_problem(worked_example())
    found = weights(problem, np.array([0, 1, 0, 1]))
    assert found == pytest.approx(np.array([[1.4, 18 / 16], [0.6, 14 / 16]]))


def test_a_union_adds_what_it_reads() -> None:
    model = load_model(
        network_of(
            [
                AbstractOperator("half", ("A",), 1, 0.5),
                AbstractOperator("both", ("half", "B"), 4, kind="union"),
                AbstractOperator("end", ("both",), 2),
            ]
        )
    )
    assert model.coefficients.tolist() == [[1, 0], [2, 4], [1, 2]]


def test_streams_between_operators_know_what_moving_them_takes() -> None:
    operators = [
        AbstractOperator("one", ("A",), 1, 0.5, tuple_bytes=40),
        AbstractOperator("two", ("one",), 1),
        AbstractOperator("three", ("one", "two"), 1),
    ]
    model = load_model(network_of(operators, "A", transfer=0.25))
    assert model.arcs.sources.tolist() == [0, 0, 1]
    assert model.arcs.targets.tolist() == [1, 2, 2]
    assert model.arcs.cpu.tolist() == [[0.125]] * 3
    assert model.arcs.bytes.tolist() == [[20.0]] * 3


def test_operators_of_one_table_are_one_unit() -> None:
    operators = [
        AbstractOperator("r", ("A",), 1, kind="sql_read", table="t"),
        AbstractOperator("f", ("r",), 5, 0.5),
        AbstractOperator("w", ("f",), 2, kind="sql_write", table="t"),
    ]
    problem = placement_problem(network_of(operators, "A"))
    assert problem.units == ("table t", "f")
    assert problem.members == (("r", "w"), ("f",))
    assert problem.rows.tolist() == [[2.0], [5.0]]
    assert problem.sticky.tolist() == [True, False]
    assert len(problem.arcs) == 2


def test_a_pinned_operator_pins_its_unit() -> None:
    operators = [AbstractOperator("a", ("A",), 1, node="n2"), AbstractOperator("b", ("A",), 1)]
    assert placement_problem(network_of(operators, "A")).pinned.tolist() == [1, -1]


def test_an_input_without_load_is_left_out_and_said_so() -> None:
    problem = placement_problem(
        network_of([AbstractOperator("a", ("A",), 1), AbstractOperator("b", ("B",), 0)])
    )
    assert problem.variables == ("A",)
    assert "B makes no load of its own and is left out" in problem.notes


def test_no_load_at_all() -> None:
    with pytest.raises(InputError) as raised:
        load_model(network_of([AbstractOperator("a", ("A",), 0)], "A"))
    assert str(raised.value) == ("no operator makes any load. Give at least one a cost above zero.")


def test_lower_bounds_beyond_all_cpu() -> None:
    network = AbstractNetwork(
        (AbstractInput("A", lower_per_s=3.0),),
        (AbstractOperator("a", ("A",), 1.0),),
        (AbstractNode("n1"), AbstractNode("n2")),
    )
    with pytest.raises(InputError) as raised:
        placement_problem(network)
    assert str(raised.value) == (
        "the lower bounds of the rates alone need 1.50 times the CPU there is. "
        "Add nodes or lower the bounds."
    )


def test_unknown_rates_are_averages_and_said_so() -> None:
    network = AbstractNetwork(
        (AbstractInput("A", 10.0, peak_per_s=30.0), AbstractInput("B")),
        (AbstractOperator("a", ("A",), 0.02), AbstractOperator("b", ("B",), 0.1)),
        (AbstractNode("n1"),),
    )
    problem = placement_problem(network)
    assert problem.rates.tolist() == [10.0, 2.0]
    assert problem.peaks.tolist() == [30.0, 2.0]
    assert problem.notes == (
        "no typical rate is known of B; planners that need one take an average",
    )


def test_an_unknown_rate_is_at_least_its_lower_bound() -> None:
    network = AbstractNetwork(
        (AbstractInput("A", 1.0), AbstractInput("B", lower_per_s=50.0)),
        (AbstractOperator("a", ("A",), 0.01), AbstractOperator("b", ("B",), 0.01)),
        (AbstractNode("n1"), AbstractNode("n2")),
    )
    assert placement_problem(network).rates.tolist() == [1.0, 50.0]
