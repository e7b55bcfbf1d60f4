"""From deployments to what planners are told."""

from pathlib import Path

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.lang.deployment import parse_deployment, read_deployment
from penstock.load.bridge import abstract_network, tied_units, unmeasured_kinds
from penstock.load.costs import CostTable
from penstock.load.problem import placement_problem
from penstock.model.abstract import AbstractNetwork
from penstock.model.estimates import OperatorEstimate
from penstock.model.network import NodeSpec
from penstock.place.fragments import placed_fragments
from penstock.place.fuse import fuse
from penstock.place.rod import Rod, rod

EXAMPLES = Path(__file__).parents[2] / "examples"
COSTS = CostTable({"aggregate": 3.0, "join": 18.0, "filter": 1.0}, "here", "2026-01-01")
NODES = (NodeSpec("a"), NodeSpec("b", cores=2))
TEXT = """
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3
  hourly: "SELECT home, window.end AS at, sum(kwh) AS kwh FROM readings
    GROUP BY home, window(ts, '1 hour')"
  tops: {sql: "SELECT home, kwh FROM hourly WHERE kwh > 9", on: b}
nodes: {a: {}, b: {cores: 2}}
"""


def bridged(text: str = TEXT, costs: CostTable = COSTS, **more: object) -> AbstractNetwork:
    network = parse_deployment(text, "meters.yaml", Path()).network
    rates = {"readings": 10.0}
    return abstract_network(network, fuse(network), NODES, costs, rates, **more)  # type: ignore


def test_units_are_fragments_and_unknown_selectivities_variables() -> None:
    problem = placement_problem(bridged())
    assert problem.units == ("hourly", "peaks", "tops")
    assert problem.variables == ("readings", "hourly_aggregate")
    assert problem.rows * 1e6 == pytest.approx(np.array([[3, 0], [1, 0], [0, 1]]))
    assert problem.capacities.tolist() == [1.0, 2.0]
    assert problem.pinned.tolist() == [-1, -1, 1]
    assert len(problem.arcs) == 1


def test_reading_counts_where_it_was_measured() -> None:
    table = CostTable({**COSTS.cost_us, "reading": 0.5}, "here", "2026-01-01")
    problem = placement_problem(bridged(costs=table))
    assert problem.rows * 1e6 == pytest.approx(np.array([[3.5, 0], [1.5, 0], [0, 1.5]]))


def test_what_was_measured_takes_precedence() -> None:
    table = CostTable({**COSTS.cost_us, "reading": 0.5}, "here", "2026-01-01")
    measured = {"hourly": OperatorEstimate(cost_us=7.0, selectivity=0.5)}
    problem = placement_problem(bridged(costs=table, measured=measured))
    assert problem.variables == ("readings",)
    assert problem.rows[:, 0] * 1e6 == pytest.approx([7.0, 1.5, 0.75])


def test_kinds_without_a_cost_are_said_to_be_free() -> None:
    network = parse_deployment(TEXT, "meters.yaml", Path()).network
    assert unmeasured_kinds(fuse(network), COSTS) == (
        "too cheap to be told apart from reading, and counted as free: map",
    )


def test_fragments_of_one_database_table_are_one_unit() -> None:
    to = 'to: {table: loads, database: "sqlite:///ami.db"}'
    text = TEXT.replace(
        "peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3",
        f'peaks: {{sql: "SELECT home, kwh FROM readings WHERE kwh > 3", {to}}}',
    ).replace("on: b", to)
    network = parse_deployment(text, "meters.yaml", Path()).network
    units = tied_units(fuse(network))
    assert units["peaks"] == units["tops"] == "peaks + tops"
    assert placement_problem(bridged(text)).units == ("hourly", "peaks + tops")


@pytest.mark.parametrize("name", ["ami/ami", "network/network", "nexmark/nexmark"])
def test_the_examples_can_be_placed(name: str) -> None:
    network = read_deployment(EXAMPLES / f"{name}.yaml").network
    fragments = fuse(network)
    problem = placement_problem(abstract_network(network, fragments, NODES, COSTS, {}))
    assert set(problem.units) == set(tied_units(fragments).values())
    assert set(rod(problem).tolist()) == {0, 1}


def test_nothing_to_place_on() -> None:
    network = parse_deployment(TEXT, "meters.yaml", Path()).network
    with pytest.raises(InputError) as raised:
        abstract_network(network, fuse(network), (), COSTS, {})
    assert str(raised.value) == (
        "the deployment names no nodes to place anything on. "
        "Add some: nodes: {a: {cores: 1}, b: {cores: 1}}."
    )


def test_tied_fragments_go_to_the_same_node() -> None:
    to = 'to: {table: loads, database: "sqlite:///ami.db"}'
    text = TEXT.replace(
        "peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3",
        f'peaks: {{sql: "SELECT home, kwh FROM readings WHERE kwh > 3", {to}}}',
    ).replace("on: b", to)
    network = parse_deployment(text, "meters.yaml", Path()).network
    places = placed_fragments(network, fuse(network), NODES, Rod(), COSTS, {"readings": 10.0})
    assert set(places) == {"hourly", "peaks", "tops"}
    assert places["peaks"] == places["tops"]
