"""Networks: names, order, and how streams hang together."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.samples import DATABASE, counted, filtered, input_of, more, stream_of
from penstock.errors import InputError
from penstock.model.fragments import Fragment
from penstock.model.network import Network, NodeSpec, Query
from penstock.model.operators import Filter, Input, Operator, SqlWrite, Switch, Union

READINGS = stream_of("readings")
ROWS = input_of(READINGS)
HIGH = filtered("high", ROWS)
PER_MINUTE = counted("per_minute", input_of(HIGH))


def network(*operators: Operator, queries: tuple[Query, ...] = ()) -> Network:
    return Network((READINGS,), operators, queries)


def chain(*names: str) -> list[Filter]:
    """Filters that each read the one before, the first the stream."""
    made: list[Filter] = []
    for name in names:
        made.append(filtered(name, input_of(made[-1]) if made else ROWS))
    return made


def test_operators_come_after_what_they_read() -> None:
    assert network(PER_MINUTE, HIGH).operators == (HIGH, PER_MINUTE)


@settings(database=None, deadline=None)
@given(seed=st.integers(0, 10**6), parents=st.lists(st.integers(0, 30), max_size=30))
def test_the_order_depends_on_the_network_alone(seed: int, parents: list[int]) -> None:
    operators: list[Filter] = []
    for at, parent in enumerate(parents):
        before = input_of(operators[parent % at]) if at else ROWS
        # Names are not in the order in which operators are made.
        operators.append(filtered(f"f{(at * 7) % 31}", before))
    shuffled = list(operators)
    random.Random(seed).shuffle(shuffled)
    ordered = network(*shuffled).operators
    assert ordered == network(*operators).operators
    seen = {"readings"}
    for operator in ordered:
        assert operator.inputs[0].stream in seen
        seen |= set(operator.outputs)
    assert len(ordered) == len(operators)


@pytest.mark.parametrize(
    ("streams", "operators", "message"),
    [
        (
            (READINGS, stream_of("READINGS")),
            (),
            "two of a stream or query are called READINGS. Rename one of them.",
        ),
        (
            (READINGS,),
            (filtered("readings", ROWS),),
            "two of a stream or query are called readings. Rename one of them.",
        ),
        (
            (READINGS,),
            (HIGH, filtered("High", ROWS)),
            "two of a stream or query are called High. Rename one of them.",
        ),
        (
            (READINGS,),
            (filtered("s_a", ROWS), Switch("s", ROWS, (("a", more("kwh", 1)),))),
            "two of a stream or query are called s_a. Rename one of them.",
        ),
        (
            (READINGS,),
            (filtered("s", ROWS), Switch("s", ROWS, (("a", more("kwh", 1)),))),
            "two of a stream or query are called s. Rename one of them.",
        ),
        (
            (READINGS,),
            (filtered("f", Input("redings", ROWS.shape)),),
            "no stream redings. There are readings, f. Did you mean readings?",
        ),
        (
            (READINGS,),
            (filtered("f", Input("f", ROWS.shape)),),
            "these read each other in a circle: f -> f. Break it by reading from a stream instead.",
        ),
    ],
)
def test_impossible_networks_are_refused(
    streams: tuple[object, ...], operators: tuple[Operator, ...], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        Network(streams, operators)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_circle_is_shown_as_who_reads_whom() -> None:
    shape = ROWS.shape
    circle = [filtered("a", Input("c", shape)), filtered("b", Input("a", shape))]
    circle.append(filtered("c", Input("b", shape)))
    with pytest.raises(InputError) as caught:
        network(*circle)
    shown = str(caught.value).removeprefix("these read each other in a circle: ").split(".")[0]
    steps = shown.split(" -> ")
    assert steps[0] == steps[-1] and set(steps) == {"a", "b", "c"}
    reads = {one.name: one.input.stream for one in circle}
    assert all(reads[one] == read for one, read in pairwise(steps))


def test_queries_have_different_names_and_known_streams() -> None:
    with pytest.raises(InputError) as caught:
        network(HIGH, queries=(Query("q", "high"), Query("Q", "high")))
    assert str(caught.value) == "two of a query are called Q. Rename one of them."
    with pytest.raises(InputError) as caught:
        network(HIGH, queries=(Query("q", "hig"),))
    assert str(caught.value) == "no stream hig. There are readings, high. Did you mean high?"
    with pytest.raises(InputError, match=r"^'a b' cannot name a query"):
        Query("a b", "high")


def test_streams_and_queries_are_found_by_name() -> None:
    found = network(HIGH, queries=(Query("q", "high"),))
    assert found.stream("readings") is READINGS
    assert found.query("q") == Query("q", "high")
    with pytest.raises(InputError) as caught:
        found.stream("high")
    assert str(caught.value) == "no stream high. There are readings."
    with pytest.raises(InputError) as caught:
        found.query("p")
    assert str(caught.value) == "no query p. There are q."


def test_who_makes_and_who_reads_a_stream() -> None:
    switch = Switch("s", ROWS, (("a", more("kwh", 1)), ("b", more("kwh", 2))))
    branches = tuple(Input(f"s_{one}", ROWS.shape) for one in "ab")
    union = Union("u", (*branches, branches[0]))
    found = network(switch, union, HIGH)
    assert found.producers == {"s_a": switch, "s_b": switch, "u": union, "high": HIGH}
    assert found.readers["readings"] == (HIGH, switch)
    assert found.readers["s_a"] == (union, union)
    assert found.readers["u"] == ()
    assert set(found.shapes) == {"readings", "s_a", "s_b", "u", "high"}


def test_upstream_is_everything_a_stream_depends_on() -> None:
    found = network(HIGH, PER_MINUTE, filtered("other", ROWS))
    assert found.upstream(["per_minute"]) == {"per_minute", "high", "readings"}
    assert found.upstream([]) == frozenset()


@pytest.mark.parametrize("length", [1, 10, 100, 1_000])
def test_long_chains_are_no_trouble(length: int) -> None:
    operators = chain(*(f"f{at}" for at in range(length)))
    found = network(*reversed(operators))
    assert len(found.upstream([operators[-1].name])) == length + 1


def test_a_node_has_a_name_and_a_core() -> None:
    with pytest.raises(InputError) as caught:
        NodeSpec("a", cores=0)
    assert str(caught.value) == "node a has 0 cores. Give at least one."
    with pytest.raises(InputError, match=r"^'a b' cannot name a node"):
        NodeSpec("a b")


def test_a_fragment_has_state_if_one_of_its_operators_has() -> None:
    assert not Fragment("high", ("readings",), (HIGH,), "high").stateful
    assert Fragment("per_minute", ("readings",), (HIGH, PER_MINUTE), "per_minute").stateful
    with pytest.raises(InputError, match=r"^'a b' cannot name a fragment"):
        Fragment("a b", (), (), "a")


def test_a_database_write_is_an_operator_like_others() -> None:
    write = SqlWrite("saved", ROWS, DATABASE, "readings")
    found = network(write, filtered("after", input_of(write)))
    assert found.upstream(["after"]) == {"after", "saved", "readings"}
