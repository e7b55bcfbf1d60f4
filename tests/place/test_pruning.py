"""Pruning: a fragment still runs when it is given no more than the columns it says it needs."""

from __future__ import annotations

import pytest
from hypothesis import given

from laws import tried
from model.samples import HOMES, MIN, S, counted, filtered, input_of, more, stream_of
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Call, Column, Expression, Literal, walk
from penstock.model.fragments import Fragment
from penstock.model.network import Network, Query
from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
    Map,
    Operator,
    PythonOperator,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.sources import MemorySink
from penstock.model.windows import TimeBound, Window
from penstock.place.fuse import fuse
from penstock.place.pruning import needed_columns
from place.networks import networks

READINGS = stream_of("readings")
ROWS = input_of(READINGS)
OFFERS = stream_of("offers", "at timestamp, house string, cents int", "at")


def needed(*operators: Operator) -> dict[str, tuple[str, ...]]:
    """The columns needed for the last operator's result."""
    query = Query("q", operators[-1].name, MemorySink())
    network = Network((READINGS, OFFERS), operators, (query,))
    (fragment,) = fuse(network)
    return dict(needed_columns(network, fragment))


def test_a_result_is_needed_whole() -> None:
    assert needed(filtered("f", ROWS))["readings"] == ("ts", "home", "kwh", "meter")


def test_a_map_needs_what_it_computes_from() -> None:
    doubled = Map("m", ROWS, (("x", Call("+", (Column("kwh"), Column("meter")))),))
    assert needed(doubled)["readings"] == ("kwh", "meter")


def test_a_filter_needs_its_condition_besides_what_is_wanted() -> None:
    high = filtered("high", ROWS)
    assert needed(high, Map("m", input_of(high), (("home", Column("home")),)))["readings"] == (
        "home",
        "kwh",
    )


def test_a_switch_needs_all_conditions() -> None:
    switch = Switch("s", ROWS, (("a", more("kwh", 1)), ("b", more("meter", 1))))
    second = Map("m", Input("s_b", switch.output), (("home", Column("home")),))
    assert needed(switch, second)["readings"] == ("home", "kwh", "meter")


def test_an_aggregate_needs_time_keys_and_arguments() -> None:
    keys = (("home", Column("home")),)
    results = (("n", AggregateCall("count")), ("top", AggregateCall("max", (Column("kwh"),))))
    aggregate = Aggregate("a", ROWS, Window.of(MIN), keys, results)
    assert needed(aggregate)["readings"] == ("ts", "home", "kwh")
    assert needed(counted("a", ROWS))["readings"] == ("ts",)


@pytest.mark.parametrize("cents", ["cents", "CENTS"])
def test_a_join_needs_times_keys_and_its_condition(cents: str) -> None:
    condition = Call(">", (Column("Meter"), Column(cents)))
    join = WindowJoin("j", ROWS, input_of(OFFERS), (("home", "house"),), TimeBound(0, S), condition)
    result = needed(join, Map("m", input_of(join), (("kwh", Column("kwh")),)))
    assert result["readings"] == ("ts", "home", "kwh", "meter")
    assert result["offers"] == ("at", "house", "cents")


def test_a_table_join_needs_its_keys() -> None:
    join = TableJoin("t", ROWS, HOMES, (("home", "home"),), (("area", "area"),))
    area = Map("m", input_of(join), (("area", Column("area")), ("k", Column("KWH"))))
    assert needed(join, area)["readings"] == ("home", "kwh")


def test_what_looks_at_whole_rows_needs_them() -> None:
    clean = PythonOperator("p", ROWS, "cleaning:drop_spikes", ROWS.schema)
    home = (("home", Column("home")),)
    assert needed(clean, Map("m", input_of(clean), home))["readings"] == ROWS.schema.names
    union = Union("u", (ROWS, ROWS))
    assert needed(union, Map("m", input_of(union), home))["readings"] == ROWS.schema.names


def test_a_row_has_at_least_one_column() -> None:
    assert needed(Map("m", ROWS, (("one", Literal(1)),)))["readings"] == ("ts",)


class Missing(Exception):
    """A fragment asked for a column that it was not given."""


def look_at(columns: frozenset[str], names: set[str]) -> None:
    absent = {name.lower() for name in names} - {name.lower() for name in columns}
    if absent:
        raise Missing(absent)


def read_columns(*expressions: Expression) -> set[str]:
    return {
        part.name
        for expression in expressions
        for part in walk(expression)
        if isinstance(part, Column)
    }


def run(operator: Operator, given: list[frozenset[str]]) -> frozenset[str]:
    """The columns an operator gives, looking at all it reads on the way."""
    match operator:
        case Filter(predicate=predicate):
            look_at(given[0], read_columns(predicate))
            return given[0]
        case Switch(cases=cases):
            look_at(given[0], read_columns(*(condition for _, condition in cases)))
            return given[0]
        case Map(columns=columns):
            look_at(given[0], read_columns(*(one for _, one in columns)))
        case Aggregate(keys=keys, aggregates=aggregates, input=input):
            arguments = [argument for _, call in aggregates for argument in call.arguments]
            look_at(given[0], read_columns(*(key for _, key in keys), *arguments))
            look_at(given[0], {str(input.shape.event_time)})
        case WindowJoin():
            for at, input in enumerate(operator.inputs):
                look_at(given[at], {pair[at] for pair in operator.equal})
                look_at(given[at], {str(input.shape.event_time)})
            if operator.condition is not None:
                look_at(given[0] | given[1], read_columns(operator.condition))
            return given[0] | given[1]
        case TableJoin(equal=equal, columns=columns):
            look_at(given[0], {left for left, _ in equal})
            return given[0] | {name for name, _ in columns}
        case _:
            for at, input in enumerate(operator.inputs):
                look_at(given[at], set(input.schema.names))
    return frozenset(operator.output.schema.names)


def run_fragment(
    fragment: Fragment, pruned: dict[str, tuple[str, ...]]
) -> dict[str, frozenset[str]]:
    """Every stream's columns, when inputs have only what pruning leaves and so have joins."""
    there = {name: frozenset(pruned[name]) for name in fragment.inputs}
    for operator in fragment.operators:
        given = [there[input.stream] for input in operator.inputs]
        if isinstance(operator, WindowJoin):
            given = [
                one & frozenset(pruned[input.stream])
                for one, input in zip(given, operator.inputs, strict=True)
            ]
        there |= dict.fromkeys(operator.outputs, run(operator, given))
    return there


@tried(50)
@given(network=networks())
def test_a_fragment_runs_on_the_columns_it_needs(network: Network) -> None:
    for fragment in fuse(network):
        pruned = dict(needed_columns(network, fragment))
        there = run_fragment(fragment, pruned)
        assert there[fragment.output] >= set(network.shapes[fragment.output].schema.names)


@tried(30)
@given(network=networks())
def test_needed_columns_are_columns_in_their_order(network: Network) -> None:
    for fragment in fuse(network):
        for stream, columns in needed_columns(network, fragment).items():
            names = network.shapes[stream].schema.names
            assert columns
            assert columns == tuple(name for name in names if name in columns)
