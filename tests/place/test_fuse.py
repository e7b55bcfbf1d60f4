"""Fusing: the rules by example, and what holds for every network."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from model.samples import (
    DATABASE,
    HOMES,
    MIN,
    S,
    counted,
    filtered,
    input_of,
    more,
    read,
    stream_of,
)
from penstock.model.expressions import Column, is_column
from penstock.model.fragments import Fragment
from penstock.model.network import Network, Query
from penstock.model.operators import (
    Input,
    Map,
    Operator,
    PythonOperator,
    SqlWrite,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.sources import MemorySink
from penstock.model.windows import TimeBound
from penstock.place.fuse import fuse
from place.networks import networks, real_stream, wanted_streams

READINGS, OFFERS = stream_of("readings"), stream_of("offers", "at timestamp, cents int", "at")
ROWS = input_of(READINGS)


def python(name: str, input: Input) -> PythonOperator:
    return PythonOperator(name, input, "cleaning:drop_spikes", input.schema)


def fused(*operators: Operator, wanted: str) -> dict[str, str]:
    """The fragments as ``{output: "inputs: operators"}``; a star marks outputs others read."""
    queries = tuple(Query(f"q_{name}", name, MemorySink()) for name in wanted.split())
    network = Network((READINGS, OFFERS), operators, queries)
    return {
        f"{one.output}{'*' if one.is_read else ''}": (
            f"{' '.join(one.inputs)}: {' '.join(operator.name for operator in one.operators)}"
        )
        for one in fuse(network)
    }


def test_a_chain_with_one_state_is_one_fragment() -> None:
    high = filtered("high", ROWS)
    per_minute = counted("per_minute", input_of(high))
    many = filtered("many", input_of(per_minute), more("n", 5))
    assert fused(high, per_minute, many, wanted="many") == {
        "many": "readings: high per_minute many"
    }


def test_a_second_state_begins_a_fragment() -> None:
    per_minute = counted("per_minute", ROWS)
    many = filtered("many", input_of(per_minute), more("n", 5))
    hours = counted("hours", input_of(many))
    assert fused(per_minute, many, hours, wanted="hours") == {
        "many*": "readings: per_minute many",
        "hours": "many: hours",
    }


def test_state_after_opaque_code_begins_a_fragment() -> None:
    clean = python("clean", ROWS)
    assert fused(clean, counted("n", input_of(clean)), wanted="n") == {
        "clean*": "readings: clean",
        "n": "clean: n",
    }


def test_opaque_code_after_state_does_not() -> None:
    per_minute = counted("per_minute", ROWS)
    clean = python("clean", input_of(per_minute))
    assert fused(per_minute, clean, wanted="clean") == {"clean": "readings: per_minute clean"}


def test_state_over_another_event_time_begins_a_fragment() -> None:
    per_minute = counted("per_minute", ROWS)
    by_start = Map(
        "by_start", input_of(per_minute), (("t", Column("window_start")), ("n", Column("n")))
    )
    hours = counted("hours", input_of(by_start))
    # Read by two, so the windows are a fragment of their own, and Spark marks their end there.
    assert fused(per_minute, by_start, hours, wanted="per_minute hours") == {
        "per_minute*": "readings: per_minute",
        "by_start*": "per_minute: by_start",
        "hours": "by_start: hours",
    }


@pytest.mark.parametrize("column", ["window_end", "WINDOW_END"])
def test_a_renamed_event_time_is_still_the_same(column: str) -> None:
    per_minute = counted("per_minute", ROWS)
    by_end = Map("by_end", input_of(per_minute), (("t", Column(column)), ("n", Column("n"))))
    hours = counted("hours", input_of(by_end))
    assert fused(per_minute, by_end, hours, wanted="per_minute hours") == {
        "per_minute*": "readings: per_minute",
        "hours": "per_minute: by_end hours",
    }


def test_stateless_work_is_repeated() -> None:
    high = filtered("high", ROWS)
    one, two = filtered("one", input_of(high)), counted("two", input_of(high))
    assert fused(high, one, two, wanted="high one two") == {
        "high": "readings: high",
        "one": "readings: high one",
        "two": "readings: high two",
    }


@pytest.mark.parametrize("make", [counted, python])
def test_state_and_opaque_code_wanted_twice_run_once(make: object) -> None:
    source = make("source", ROWS)  # type: ignore[operator]
    column = "n" if source.kind == "aggregate" else "kwh"
    one = filtered("one", input_of(source), more(column, 1))
    two = filtered("two", input_of(source), more(column, 2))
    assert fused(source, one, two, wanted="one two") == {
        "source*": "readings: source",
        "one": "source: one",
        "two": "source: two",
    }
    assert fused(source, one, wanted="source one") == {
        "source*": "readings: source",
        "one": "source: one",
    }


def test_the_cut_is_where_the_paths_part() -> None:
    per_minute = counted("per_minute", ROWS)
    many = filtered("many", input_of(per_minute), more("n", 5))
    one = filtered("one", input_of(many), more("n", 6))
    two = filtered("two", input_of(many), more("n", 7))
    assert fused(per_minute, many, one, two, wanted="one two") == {
        "many*": "readings: per_minute many",
        "one": "many: one",
        "two": "many: two",
    }


def test_two_cases_of_a_switch_after_state_compute_it_once() -> None:
    per_minute = counted("per_minute", ROWS)
    switch = Switch("s", input_of(per_minute), (("few", more("n", 1)), ("many", more("n", 9))))
    few = filtered("few", Input("s_few", switch.output), more("n", 2))
    assert fused(per_minute, switch, few, wanted="few s_many") == {
        "per_minute*": "readings: per_minute",
        "s_many": "per_minute: s",
        "few": "per_minute: s few",
    }
    assert fused(per_minute, switch, few, wanted="few") == {"few": "readings: per_minute s few"}


def test_a_union_of_one_state_and_a_stream_is_one_fragment() -> None:
    per_minute = counted("per_minute", ROWS)
    more_rows = read("others", "a timestamp, b timestamp, n bigint", None)
    others = stream_of("others", "a timestamp, b timestamp, n bigint", None)
    union = Union("u", (input_of(per_minute), more_rows))
    query = Query("q", "u", MemorySink())
    (fragment,) = fuse(Network((READINGS, others), (per_minute, union), (query,)))
    assert fragment.inputs == ("others", "readings")


def test_a_union_of_two_states_reads_both() -> None:
    one, two = counted("one", ROWS), counted("two", ROWS)
    union = Union("u", (input_of(one), input_of(two)))
    assert fused(one, two, union, wanted="u") == {
        "one*": "readings: one",
        "two*": "readings: two",
        "u": "one two: u",
    }


def test_a_union_of_one_state_with_itself_reads_it_twice() -> None:
    one = counted("one", ROWS)
    union = Union("u", (input_of(one), input_of(one)))
    assert fused(one, union, wanted="u") == {"one*": "readings: one", "u": "one: u"}


def test_a_join_of_two_streams_with_stateless_work_before_and_after() -> None:
    high = filtered("high", ROWS)
    join = WindowJoin("j", input_of(high), input_of(OFFERS), (), TimeBound(0, S))
    added = TableJoin("t", input_of(join), HOMES, (("home", "home"),), (("area", "area"),))
    assert fused(high, join, added, wanted="t") == {"t": "offers readings: high j t"}


def test_what_nobody_wants_runs_nowhere() -> None:
    per_minute = counted("per_minute", ROWS)
    unwanted = [filtered(name, input_of(per_minute), more("n", 1)) for name in ("a", "b")]
    assert fused(per_minute, *unwanted, wanted="") == {}
    # Readers that do not run are no reason to cut.
    assert fused(per_minute, *unwanted, wanted="a") == {"a": "readings: per_minute a"}


def test_a_query_without_a_sink_is_for_others_to_read() -> None:
    high = filtered("high", ROWS)
    top = filtered("top", input_of(high))
    queries = (Query("high", "high"), Query("top", "top", MemorySink()))
    (fragment,) = fuse(Network((READINGS,), (high, top), queries))
    assert fragment.output == "top"
    assert fragment.queries == ("top",)


def test_a_stream_that_is_a_result_itself() -> None:
    query = Query("all_of_it", "readings", MemorySink())
    (fragment,) = fuse(Network((READINGS,), (), (query,)))
    assert fragment == Fragment("readings", ("readings",), (), "readings", queries=("all_of_it",))


def on_nodes(nodes: dict[str, str], *operators: Operator) -> dict[str, str]:
    """The fragments, of which every result is wanted, with queries on these nodes."""
    results = [name for operator in operators for name in operator.outputs]
    queries = tuple(
        Query(f"q_{result}", result, MemorySink(), on=nodes.get(result)) for result in results
    )
    found = fuse(Network((READINGS, OFFERS), operators, queries))
    return {one.output: " ".join(one.inputs) for one in found}


def test_what_is_to_run_elsewhere_is_read() -> None:
    first = filtered("first", ROWS)
    second = filtered("second", read("first"))
    third = filtered("third", read("second"))
    chain = (first, second, third)
    alone = dict.fromkeys(("first", "second", "third"), "readings")
    assert on_nodes({}, *chain) == alone
    assert on_nodes({"first": "a", "third": "a"}, *chain) == alone
    assert on_nodes({"first": "a", "third": "b"}, *chain) == alone | {
        "second": "first",
        "third": "first",
    }
    assert on_nodes({"first": "a", "second": "b", "third": "a"}, *chain) == alone | {
        "second": "first",
        "third": "second",
    }


def test_what_is_apart_anyway_is_not_cut_once_more() -> None:
    first = filtered("first", ROWS)
    second = counted("second", read("first"))
    third = counted("third", input_of(second))
    found = fuse(
        Network(
            (READINGS,),
            (first, second, third),
            (
                Query("q1", "first", on="a"),
                Query("q3", "third", MemorySink(), on="b"),
            ),
        )
    )
    assert {one.output: " ".join(one.inputs) for one in found} == {
        "second": "readings",
        "third": "second",
    }


def test_a_join_of_results_of_two_nodes_reads_both() -> None:
    left, right = filtered("left", ROWS), filtered("right", ROWS)
    both = Union("both", (read("left"), read("right")))
    found = on_nodes({"left": "a", "right": "b"}, left, right, both)
    assert found == {"left": "readings", "right": "readings", "both": "left right"}
    found = on_nodes({"left": "a", "right": "b", "both": "a"}, left, right, both)
    assert found["both"] == "readings right"


def test_a_database_write_hands_on_what_it_reads() -> None:
    high = filtered("high", ROWS)
    saved = SqlWrite("saved", input_of(high), DATABASE, "high")
    again = SqlWrite("again", input_of(saved), DATABASE, "again")
    top = filtered("top", input_of(again))
    queries = (Query("top", "top", MemorySink()), Query("saved", "saved", MemorySink()))
    fragments = fuse(Network((READINGS,), (high, saved, again, top), queries))
    assert [fragment.name for fragment in fragments] == ["high", "top"]
    assert fragments[0].writes == (saved, again)
    assert fragments[0].queries == ("saved",)
    assert [operator.name for operator in fragments[1].operators] == ["high", "top"]
    # What runs must find its input under the name it has inside the fragment.
    assert fragments[1].operators[1].inputs == (Input("high", ROWS.shape),)


def test_joins_and_unions_read_past_writes_too() -> None:
    saved = SqlWrite("saved", ROWS, DATABASE, "readings")
    union = Union("u", (input_of(saved), ROWS))
    join = WindowJoin("j", input_of(saved), input_of(OFFERS), (), TimeBound(0, S))
    queries = tuple(Query(f"q_{name}", name, MemorySink()) for name in "uj")
    fragments = fuse(Network((READINGS, OFFERS), (saved, union, join), queries))
    reads = {
        fragment.name: [input.stream for input in fragment.operators[-1].inputs]
        for fragment in fragments[1:]
    }
    assert reads == {"j": ["readings", "offers"], "u": ["readings", "readings"]}


def test_the_delay_counts_through_a_write() -> None:
    per_minute = counted("per_minute", ROWS)
    saved = SqlWrite("saved", input_of(per_minute), DATABASE, "counts")
    starts = Map("starts", input_of(saved), (("t", Column("window_start")),))
    query = Query("q", "starts", MemorySink())
    fragments = fuse(Network((READINGS,), (per_minute, saved, starts), (query,)))
    assert {fragment.name: fragment.delay_us for fragment in fragments} == {
        "per_minute": 0,
        "starts": MIN,
    }


any_network = tried(35)


@any_network
@given(network=networks())
def test_fragments_compute_what_the_network_says(network: Network) -> None:
    fragments = {one.output: one for one in fuse(network)}
    assert wanted_streams(network) <= set(fragments)
    for stream in wanted_streams(network):
        assert _through(fragments, fragments[stream]) == _meaning(network, stream)


def _meaning(network: Network, stream: str) -> object:
    """What a stream is, as a tree of operators down to the streams from outside."""
    stream = real_stream(network, stream)
    producer = network.producers.get(stream)
    if producer is None:
        return stream
    return (stream, *(_meaning(network, input.stream) for input in producer.inputs))


def _through(fragments: dict[str, Fragment], fragment: Fragment) -> object:
    """The same tree, going only where a fragment can look: at its inputs and its operators."""
    known: dict[str, object] = {
        name: _through(fragments, fragments[name])
        if name in fragments and name != fragment.output
        else name
        for name in fragment.inputs
    }
    for operator in fragment.operators:
        parts = tuple(known[input.stream] for input in operator.inputs)
        known |= {stream: (stream, *parts) for stream in operator.outputs}
    return known[fragment.output]


@any_network
@given(network=networks())
def test_a_fragment_has_one_state_and_nothing_settled_before_it(network: Network) -> None:
    for fragment in fuse(network):
        assert sum(operator.stateful for operator in fragment.operators) <= 1
        settled: set[str] = set()
        for operator in fragment.operators:
            before = {input.stream for input in operator.inputs} & settled
            assert not (operator.stateful and before)
            assert not (isinstance(operator, Union) and len(before) > 1)
            if before or operator.stateful or operator.opaque or _retimes(operator):
                settled |= set(operator.outputs)


def _retimes(operator: Operator) -> bool:
    before, after = operator.inputs[0].shape.event_time, operator.output.event_time
    if not isinstance(operator, Map) or before is None or after is None:
        return False
    return not is_column(dict(operator.columns)[after], before)


@any_network
@given(network=networks())
def test_costly_work_runs_once_and_unwanted_work_never(network: Network) -> None:
    fragments = fuse(network)
    runs = [operator.name for fragment in fragments for operator in fragment.operators]
    alive = network.upstream(wanted_streams(network))
    for operator in network.operators:
        wanted = not alive.isdisjoint(operator.outputs)
        if isinstance(operator, SqlWrite) or not wanted:
            assert operator.name not in runs
        elif operator.stateful or operator.opaque:
            assert runs.count(operator.name) == 1
        else:
            assert operator.name in runs


@any_network
@given(network=networks())
def test_fragments_come_after_what_they_read(network: Network) -> None:
    outside = {stream.name for stream in network.streams}
    read_by_others: dict[str, bool] = {}
    read = set()
    for fragment in fuse(network):
        for name in fragment.inputs:
            assert name in outside or read_by_others[name]
            read.add(name)
        read_by_others[fragment.output] = fragment.is_read
        assert fragment.name == fragment.output
    # A channel that nobody reads would grow for ever.
    assert {name for name, is_read in read_by_others.items() if is_read} <= read


@any_network
@given(network=networks())
def test_every_result_and_every_write_is_in_one_fragment(network: Network) -> None:
    fragments = fuse(network)
    queries = [name for fragment in fragments for name in fragment.queries]
    writes = [write for fragment in fragments for write in fragment.writes]
    assert len(queries) == len(set(queries))
    assert {query.name for query in network.queries if query.sink is not None} <= set(queries)
    assert len(writes) == len({one.name for one in writes})
    assert {operator for operator in network.operators if isinstance(operator, SqlWrite)} == set(
        writes
    )


@any_network
@given(network=networks(), data=st.data())
def test_the_fragments_depend_on_the_network_alone(network: Network, data: st.DataObject) -> None:
    operators = data.draw(st.permutations(network.operators))
    assert fuse(Network(network.streams, tuple(operators), network.queries)) == fuse(network)


@pytest.mark.parametrize("length", [1, 10, 100, 1_000])
def test_long_chains_are_no_trouble(length: int) -> None:
    operators: list[Operator] = []
    for at in range(length):
        operators.append(filtered(f"f{at}", input_of(operators[-1]) if operators else ROWS))
    query = Query("q", operators[-1].name, MemorySink())
    (fragment,) = fuse(Network((READINGS,), tuple(operators), (query,)))
    assert len(fragment.operators) == length
