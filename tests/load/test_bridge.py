"""From deployments to what planners are told."""

from pathlib import Path

import numpy as np
import pytest

from penstock.control.records import Submission
from penstock.control.spreading import in_parts
from penstock.control.system import assemble
from penstock.errors import InputError
from penstock.lang.deployment import parse_deployment, read_deployment
from penstock.load.batches import BatchNetwork, BatchWork, batch_network
from penstock.load.bridge import (
    abstract_network,
    tied_units,
    unmeasured_batches,
    unmeasured_kinds,
)
from penstock.load.costs import CostTable
from penstock.load.problem import placement_problem
from penstock.model.abstract import AbstractNetwork
from penstock.model.binding import may_move
from penstock.model.estimates import OperatorEstimate
from penstock.model.network import NodeSpec
from penstock.place.fragments import place_fragments
from penstock.place.fuse import fuse
from penstock.place.rhythm import counted_rounds_s, unhurried
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


BATCHES = CostTable(
    COSTS.cost_us, "here", "2026-01-01", {"stateless": 50.0, "aggregate": 100.0, "join": 200.0}
)
JOINED = """
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  hourly: {sql: "SELECT home, window.end AS at, sum(kwh) AS kwh FROM readings
    GROUP BY home, window(ts, '1 hour')", max_latency: 8s}
  near: {sql: "SELECT h.home FROM hourly h JOIN readings r ON h.home = r.home
    AND r.ts BETWEEN h.at AND h.at + INTERVAL 30 MINUTES", max_latency: 20s}
nodes: {a: {}, b: {cores: 2}}
"""


def test_rounds_are_a_fixed_load_by_kind_of_batch() -> None:
    problem = placement_problem(bridged(costs=BATCHES, rounds_s={"hourly": 2.0, "peaks": 0.5}))
    assert problem.units == ("hourly", "peaks", "tops")
    assert problem.fixed == pytest.approx([0.1 / 2, 0.05 / 0.5, 0.0])


def test_light_fragments_have_batches_of_their_own_kind() -> None:
    table = CostTable(COSTS.cost_us, "here", "2026-01-01", {**BATCHES.batch_ms, "light": 2.0})
    rounds_s = {"hourly": 2.0, "peaks": 0.5}
    problem = placement_problem(bridged(costs=table, rounds_s=rounds_s, light={"hourly"}))
    assert problem.fixed == pytest.approx([0.002 / 2, 0.05 / 0.5, 0.0])


def test_rounds_follow_from_what_was_promised() -> None:
    network = parse_deployment(JOINED, "joined.yaml", Path()).network
    rounds_s = counted_rounds_s(network, fuse(network))
    assert rounds_s == {"hourly": 2.0, "near": 5.0}
    problem = placement_problem(bridged(JOINED, BATCHES, rounds_s=rounds_s))
    fixed = dict(zip(problem.units, problem.fixed.tolist(), strict=True))
    assert fixed == {"hourly": pytest.approx(0.05), "near": pytest.approx(0.2 / 5)}


def test_kinds_and_windows_are_carried_over() -> None:
    operators = {operator.name: operator for operator in bridged(JOINED, BATCHES).operators}
    assert operators["hourly_aggregate"].kind == "aggregate"
    (join,) = [operator for operator in operators.values() if operator.is_join]
    assert (join.window_s, join.cost_s) == (1_800.0, 0.0)
    sides = [operators[name] for name in join.inputs]
    assert [side.cost_s * 1e6 for side in sides] == pytest.approx([18.0, 18.0])


def test_what_was_measured_of_batches_is_told_apart_from_rows() -> None:
    """25 rows shared 100 ms: 4,000 us of each row's 4,007 are the batch's."""
    measured = {"hourly": OperatorEstimate(4_007.0, selectivity=0.5, rows_per_batch=25.0)}
    rounds_s = {"hourly": 2.0}
    found = bridged(costs=BATCHES, measured=measured, rounds_s=rounds_s).operators[0]
    assert (found.cost_s * 1e6, found.fixed_cpu) == (pytest.approx(7.0), pytest.approx(0.05))
    unknown = {"hourly": OperatorEstimate(4_007.0, selectivity=0.5)}
    found = bridged(costs=BATCHES, measured=unknown, rounds_s=rounds_s).operators[0]
    assert (found.cost_s * 1e6, found.fixed_cpu) == (pytest.approx(4_007.0), 0.0)


def test_what_writes_a_database_is_bound_to_its_node() -> None:
    text = TEXT.replace("on: b", 'to: {table: loads, database: "sqlite:///ami.db"}')
    network = parse_deployment(text, "meters.yaml", Path()).network
    bound = {fragment.name: fragment.is_bound for fragment in fuse(network)}
    assert bound == {"hourly": False, "peaks": False, "tops": True}
    problem = placement_problem(bridged(text))
    assert dict(zip(problem.units, problem.sticky.tolist(), strict=True)) == bound
    simulated = batches_of(text).network
    assert {operator.name: operator.is_bound for operator in simulated.operators} == bound


ON_NODES = """
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  high: {sql: "SELECT ts, home, kwh FROM readings WHERE kwh > 3", on: b}
  higher: "SELECT home, kwh FROM high WHERE kwh > 6"
  hourly: {sql: "SELECT home, window.end AS at, sum(kwh) AS kwh FROM readings
    GROUP BY home, window(ts, '1 hour')", on: a}
  pairs: {sql: "SELECT h.home FROM hourly h JOIN readings r ON h.home = r.home
    AND r.ts BETWEEN h.at AND h.at + INTERVAL 30 MINUTES", TO}
nodes: {a: {}, b: {cores: 2}}
"""


@pytest.mark.parametrize(
    "to", ["max_latency: 5s", "on: b", 'to: {table: loads, database: "sqlite:///ami.db"}']
)
def test_plans_simulations_and_running_systems_bind_the_same_fragments(to: str) -> None:
    text = ON_NODES.replace("TO", to)
    submission = Submission(1, "ami", "yaml", text, ".")
    units = [unit for unit in assemble([submission]).units.values() if unit.fragment is not None]
    live = {unit.name: not may_move(unit.fragment, unit.on) for unit in units}
    planned: dict[str, bool] = {}
    for operator in bridged(text).operators:
        planned[operator.unit] = planned.get(operator.unit, False) or operator.is_bound
    simulated = {
        operator.name: operator.is_bound for operator in batches_of(text).network.operators
    }
    assert planned == simulated == live
    assert simulated["pairs"] == (to != "max_latency: 5s") and simulated["hourly"]


def batches_of(text: str, paces: dict[str, float] | None = None) -> BatchNetwork:
    network = parse_deployment(text, "meters.yaml", Path()).network
    fragments = fuse(network)
    rounds_s = dict.fromkeys((fragment.name for fragment in fragments), 2.0)
    return batch_network(
        network, fragments, NODES, BATCHES, {"readings": 10.0}, rounds_s, paces=paces
    )


def test_batches_have_an_operator_for_every_fragment() -> None:
    found = batches_of(TEXT).network
    assert [stream.name for stream in found.inputs] == ["readings"]
    assert {operator.name: operator.inputs for operator in found.operators} == {
        "hourly": ("readings",), "peaks": ("readings",), "tops": ("hourly",)
    }  # fmt: skip
    assert [operator.fixed_cpu for operator in found.operators] == pytest.approx(
        [0.05, 0.025, 0.025]
    )
    assert [operator.cost_s * 1e6 for operator in found.operators] == pytest.approx([3.0, 1.0, 1.0])
    assert [operator.selectivity for operator in found.operators] == [None, None, None]
    assert [operator.node for operator in found.operators] == ["", "", "b"]


def test_batches_have_kind_window_and_state() -> None:
    work = batches_of(JOINED).work
    assert work["hourly"] == BatchWork(2.0, "aggregate", keeps_s=3_600.0, gives_every_s=3_600.0)
    assert work["near"] == BatchWork(2.0, "join", keeps_s=1_800.0, gives_every_s=None)
    assert batches_of(TEXT).work["peaks"] == BatchWork(2.0, "stateless")


def test_windows_pass_as_fast_as_event_time() -> None:
    """What reads windows of a recording that runs 600 times as fast does so as well."""
    work = batches_of(JOINED, {"readings": 600.0}).work
    assert (work["hourly"].keeps_s, work["hourly"].gives_every_s) == (6.0, 6.0)
    assert work["near"].keeps_s == 3.0


def test_what_is_said_about_batches() -> None:
    network = parse_deployment(JOINED, "joined.yaml", Path()).network
    fragments = fuse(network)
    assert unmeasured_batches(fragments, COSTS) == (
        "what a batch costs has not been measured, and counts as nothing: aggregate, join",
    )
    assert not unmeasured_batches(fragments, BATCHES)
    (note,) = unmeasured_batches(fragments, BATCHES, {"hourly"})
    assert note.endswith("counts as nothing: light, light_round")
    assert not unhurried(network, fragments)
    hasty = parse_deployment(TEXT, "meters.yaml", Path()).network
    assert unhurried(hasty, fuse(hasty)) == (
        "without a max_latency, and counted with a batch every 5 s: hourly, peaks, tops",
    )
    assert set(counted_rounds_s(hasty, fuse(hasty)).values()) == {5.0}


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
    places = place_fragments(network, fuse(network), NODES, Rod(), COSTS, {"readings": 10.0})
    assert set(places) == {"hourly", "peaks", "tops"}
    assert places["peaks"] == places["tops"]


LIGHT = CostTable(
    {**COSTS.cost_us, "reading": 0.5, "light": 0.2, "light_reading": 1.0},
    "here",
    "2026-01-01",
    {**BATCHES.batch_ms, "light": 2.0, "light_round": 60.0},
)
MEMBERS = """
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  hourly: {sql: "SELECT home, window.end AS at, sum(kwh) AS kwh FROM readings
    GROUP BY home, window(ts, '1 hour')", max_latency: 8s}
  daily: {sql: "SELECT home, window.end AS at, sum(kwh) AS kwh FROM readings
    GROUP BY home, window(ts, '1 day')", max_latency: 20s}
nodes: {a: {}, b: {cores: 2}}
"""


def test_members_share_what_a_round_and_reading_cost() -> None:
    """Both in rounds of 2 s, those of the more hurried; 60 ms of them once for a node."""
    rounds_s = {"hourly": 2.0, "daily": 5.0}
    problem = placement_problem(
        bridged(MEMBERS, LIGHT, rounds_s=rounds_s, light={"hourly", "daily"})
    )
    assert problem.rows[:, 0] * 1e6 == pytest.approx([0.2, 0.2])
    assert problem.fixed == pytest.approx([0.001, 0.001])
    (opening,) = problem.openings
    assert opening.units.tolist() == [0, 1]
    assert opening.row[0] * 1e6 == pytest.approx(1.0)
    assert opening.fixed == pytest.approx(0.03)


def test_a_node_with_native_fragments_has_the_costs_it_had() -> None:
    rounds_s = {"hourly": 2.0, "daily": 5.0}
    plain = CostTable({**COSTS.cost_us, "reading": 0.5}, "here", "2026-01-01", BATCHES.batch_ms)
    assert bridged(MEMBERS, LIGHT, rounds_s=rounds_s) == bridged(MEMBERS, plain, rounds_s=rounds_s)
    light = {"hourly", "daily"}
    unmeasured = bridged(MEMBERS, plain, rounds_s=rounds_s, light=light)
    assert not unmeasured.openings
    assert unmeasured.operators[0].cost_s * 1e6 == pytest.approx(0.5)


def test_what_was_measured_of_members_is_without_their_part_of_the_round() -> None:
    """1,000 rows shared a round of 60 ms for two, and 2 ms of each: 32 ms are 32 us a row."""
    rounds_s = dict.fromkeys(("hourly", "daily"), 2.0)
    measured = {"hourly": OperatorEstimate(33.0, selectivity=0.5, rows_per_batch=1_000.0)}
    light = {"hourly", "daily"}
    found = bridged(MEMBERS, LIGHT, measured=measured, rounds_s=rounds_s, light=light)
    operators = {operator.name: operator for operator in found.operators}
    assert operators["hourly"].cost_s * 1e6 == pytest.approx(0.5)
    assert operators["hourly"].fixed_cpu == pytest.approx(0.001)
    assert "hourly" in found.openings[0].operators
    # Where it is not known how many rows shared a round, everything is in the cost of a row.
    measured = {"hourly": OperatorEstimate(33.0, selectivity=0.5)}
    found = bridged(MEMBERS, LIGHT, measured=measured, rounds_s=rounds_s, light=light)
    operators = {operator.name: operator for operator in found.operators}
    assert operators["hourly"].cost_s * 1e6 == pytest.approx(33.0)
    assert "hourly" not in found.openings[0].operators


def test_simulated_members_share_their_rounds() -> None:
    network = parse_deployment(MEMBERS, "meters.yaml", Path()).network
    rounds_s = {"hourly": 2.0, "daily": 5.0}
    found = batch_network(
        network, fuse(network), NODES, LIGHT, {"readings": 10.0}, rounds_s, None, set(rounds_s)
    ).network
    assert [operator.cost_s * 1e6 for operator in found.operators] == pytest.approx([0.2, 0.2])
    (opening,) = found.openings
    assert (opening.operators, opening.input) == (("daily", "hourly"), "readings")
    assert (opening.fixed_cpu, opening.cost_s * 1e6) == (pytest.approx(0.03), pytest.approx(1.0))


JOINS = CostTable({**LIGHT.cost_us, "light_join": 1.5, "pair": 0.25}, "here", "2026-01-01",
                  LIGHT.batch_ms)  # fmt: skip


def test_a_light_join_costs_what_its_rows_and_pairs_cost() -> None:
    """Whatever is before and behind it in its fragment is counted with these."""
    found = bridged(JOINED, JOINS, light={"near"})
    near = {operator.name: operator for operator in found.operators if operator.unit == "near"}
    reading = [operator for name, operator in near.items() if name.endswith("/read")]
    assert [operator.cost_s * 1e6 for operator in reading] == pytest.approx([1.5, 1.5])
    (join,) = [operator for operator in near.values() if operator.is_join]
    (pairs,) = [operator for operator in near.values() if operator.inputs == (join.name,)]
    assert pairs.cost_s * 1e6 == pytest.approx(0.25)
    rest = near.keys() - {join.name, pairs.name, *(operator.name for operator in reading)}
    assert not any(near[name].cost_s for name in rest)
    problem = placement_problem(found)
    at = problem.variables.index(join.name)
    assert problem.rows[problem.units.index("near"), at] * 1e6 == pytest.approx(0.25)


@pytest.mark.parametrize(("costs", "light"), [(LIGHT, {"near"}), (JOINS, set())])
def test_other_joins_have_the_costs_they_had(costs: CostTable, light: set[str]) -> None:
    assert bridged(JOINED, costs, light=light) == bridged(JOINED, LIGHT)


def test_a_simulated_light_join_costs_the_same() -> None:
    """Where nobody knows how many pairs there are, there is one for each row."""
    network = parse_deployment(JOINED, "joined.yaml", Path()).network
    rounds_s = {"hourly": 2.0, "near": 5.0}
    found = batch_network(
        network, fuse(network), NODES, JOINS, {"readings": 10.0}, rounds_s, None, {"near"}
    ).network
    (near,) = [operator for operator in found.operators if operator.name == "near"]
    assert near.cost_s * 1e6 == pytest.approx(1.5 + 0.25)


SPREAD = """
streams:
  calls: {source: {directory: in, format: csv}, schema: "ts timestamp, k string", event_time: ts, lateness: 1s}
  taps: {source: {directory: in, format: csv}, schema: "at timestamp, k string", event_time: at, lateness: 1s}
queries:
  pairs: {sql: "SELECT l.ts, l.k FROM calls l JOIN taps r ON l.k = r.k
    AND r.at BETWEEN l.ts AND l.ts + INTERVAL 1 MINUTE", join: {spread: 3, groups: 6}}
  counts: "SELECT window.end AS at, count(*) AS n FROM pairs GROUP BY window(ts, '1 hour')"
"""  # noqa: E501


def test_parts_of_a_join_are_units_on_nodes_of_their_own() -> None:
    """Each reads all rows and gives its own pairs; what gathers them is read like the join."""
    network = parse_deployment(SPREAD, "spread.yaml", Path()).network
    fragments = in_parts(network, fuse(network))
    light = {fragment.name for fragment in fragments}
    found = abstract_network(
        network, fragments, NODES, JOINS, {"calls": 10.0, "taps": 5.0}, light=light
    )
    problem = placement_problem(found)
    rows = dict(zip(problem.units, (problem.rows * 1e6).tolist(), strict=True))
    pins = dict(zip(problem.units, problem.pinned.tolist(), strict=True))
    pairs = [problem.variables.index(f"pairs_part{at}/pairs_join/found") for at in (1, 2, 3)]
    for at in (1, 2, 3):
        own = rows[f"pairs_part{at}"]
        assert [own[problem.variables.index(name)] for name in ("calls", "taps")] == [1.5, 1.5]
        assert [own[variable] for variable in pairs] == [0.25 * (one == at) for one in (1, 2, 3)]
    assert [pins[f"pairs_part{at}"] for at in (1, 2, 3)] == [0, 1, 0]
    assert [rows["pairs"][variable] for variable in pairs] == [1.0, 1.0, 1.0]
    assert pins["pairs"] == pins["counts"] == -1
    assert len(problem.arcs) == 4, "three parts to what gathers them, and from there to counts"
