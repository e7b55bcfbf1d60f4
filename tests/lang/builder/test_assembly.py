"""Names, sharing and deployments."""

import pytest

import penstock as ps
from penstock.lang.builder import Flow
from penstock.lang.deployment import deployment_yaml
from penstock.model.network import NodeSpec

readings = ps.stream("readings", source=ps.generate.meters(days=1), lateness="2 min")


def names(*flows: Flow) -> list[str]:
    return [operator.name for operator in ps.deployment(*flows).network.operators]


def test_steps_are_called_after_their_query() -> None:
    flow = readings.filter("kwh > 0").window(60).agg(n=ps.count()).filter("n > 1").filter("n < 9")
    assert names(flow.named("q")) == ["q_filter", "q_aggregate", "q_filter_2", "q"]


def test_a_named_flow_inside_keeps_its_name() -> None:
    inner = readings.filter("kwh > 0").select("home").named("inner")
    outer = inner.filter("home <> 'h1'").select(h="home").named("outer")
    assert names(outer) == ["inner_filter", "inner", "outer_filter", "outer"]
    deployment = ps.deployment(outer)
    assert [query.name for query in deployment.network.queries] == ["outer"]


def test_a_flow_used_twice_is_one_operator() -> None:
    shared = readings.filter("kwh > 0")
    one, two = shared.select("home").named("one"), shared.select("kwh").named("two")
    assert set(names(one, two)) == {"one_filter", "one", "two"}
    network = ps.deployment(one, two).network
    assert network.producers["two"].inputs[0].stream == "one_filter"


def test_naming_leaves_the_flow_as_it_is() -> None:
    flow = readings.filter("kwh > 0")
    named = flow.named("a")
    assert (flow.name, named.name, named.named("b").name) == (None, "a", "b")


def test_naming_a_stream_or_a_case_adds_a_map() -> None:
    assert names(readings.named("copy")) == ["copy"]
    case = readings.switch("level", high="kwh > 9")["high"]
    assert names(case.named("peaks")) == ["level", "peaks"]


def test_one_definition_twice_is_one() -> None:
    def heavy() -> Flow:
        return readings.filter("kwh > 9").named("heavy")

    one, two = heavy().select("home").named("one"), heavy().select("kwh").named("two")
    assert set(names(one, two)) == {"heavy", "one", "two"}


def test_long_chains() -> None:
    flow = readings
    for _ in range(1_000):
        flow = flow.filter("kwh > 0")
    assert len(names(flow.named("q"))) == 1_000


def test_deployment() -> None:
    heavy = readings.filter("kwh > 9").named("heavy")
    deployment = ps.deployment(
        heavy,
        name="ami",
        nodes={"a": {"cores": 2, "memory": "1g"}},
        placement="rod",
        balance={"every": "10s"},
    )
    assert deployment.nodes == (NodeSpec("a", 2, 1 << 30),)
    assert (deployment.name, deployment.placement) == ("ami", "rod")
    assert ps.deployment(heavy, nodes=2).nodes == (NodeSpec("node1"), NodeSpec("node2"))
    assert ps.deployment(heavy, nodes=[NodeSpec("x")]).nodes == (NodeSpec("x"),)
    assert "heavy" in deployment_yaml(deployment)


def test_unread_streams_can_be_part_of_it() -> None:
    other = ps.stream("other", source=ps.generate.packets(seconds=9))
    peaks = readings.filter("kwh > 9").named("peaks")
    network = ps.deployment(readings.select("home").named("q"), streams=[other, peaks]).network
    assert [stream.name for stream in network.streams] == ["other", "readings"]
    assert {operator.name for operator in network.operators} == {"q", "peaks"}
    assert [query.name for query in network.queries] == ["q"]


@pytest.mark.parametrize("count", [1, 10, 100])
def test_ladder(count: int) -> None:
    flows = [readings.filter(f"kwh > {at}").named(f"q{at}") for at in range(count)]
    assert len(ps.deployment(*flows).network.operators) == count
