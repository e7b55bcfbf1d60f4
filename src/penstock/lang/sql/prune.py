"""Columns nobody needs are dropped, above all before joins, which remember whole rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from penstock.lang.sql.graph import Graph, rewired
from penstock.model.expressions import Column, columns_of
from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
    Map,
    Operator,
    TableJoin,
    WindowJoin,
)
from penstock.model.schema import Shape

Names = frozenset[str]


def prune_columns(graph: Graph, working_name: Callable[[], str]) -> Graph:
    """With every operator reduced to the columns that are needed further on."""
    needed = _needed(graph)
    shapes: dict[str, Shape] = {}
    operators: list[Operator] = []
    owners = dict(graph.owners)
    for operator in graph.operators:
        inputs = tuple(
            Input(one.stream, shapes.get(one.stream, one.shape)) for one in operator.inputs
        )
        if isinstance(operator, WindowJoin):
            narrow = _narrowed(operator, inputs, needed[operator.name], working_name)
            new = [one for one in narrow if isinstance(one, Map)]
            operators += new
            owners.update({one.name: owners[operator.name] for one in new})
            inputs = tuple(
                Input(one.name, one.output) if isinstance(one, Map) else one for one in narrow
            )
        kept = rewired(_reduced(operator, needed[operator.name]), inputs)
        operators.append(kept)
        shapes[kept.name] = kept.output
    return replace(graph, operators=tuple(operators), owners=owners)


def _needed(graph: Graph) -> dict[str, Names]:
    """The columns of every stream that its readers need."""
    needed: dict[str, Names] = {one.name: frozenset() for one in graph.operators}
    for operator in reversed(graph.operators):
        if operator.name == graph.result:
            needed[operator.name] = frozenset(operator.output.schema.names)
        for input, names in zip(
            operator.inputs, _reads(operator, needed[operator.name]), strict=True
        ):
            needed[input.stream] = needed.get(input.stream, frozenset()) | names
    return needed


def _reads(operator: Operator, wanted: Names) -> tuple[Names, ...]:
    """The columns an operator needs of each input when ``wanted`` of its own are needed."""
    match operator:
        case Filter(predicate=predicate):
            return (wanted | columns_of(predicate),)
        case Map():
            kept = _reduced(operator, wanted)
            assert isinstance(kept, Map)
            return (_all(columns_of(one) for _, one in kept.columns),)
        case Aggregate(input=input, keys=keys):
            kept = _reduced(operator, wanted)
            assert isinstance(kept, Aggregate) and input.shape.event_time
            calls = (columns_of(one) for _, call in kept.aggregates for one in call.arguments)
            return (
                _all([*(columns_of(one) for _, one in keys), *calls, {input.shape.event_time}]),
            )
        case WindowJoin(left=left, right=right):
            return (_side(operator, left, wanted, 0), _side(operator, right, wanted, 1))
        case TableJoin(input=input, equal=equal):
            own = frozenset(input.schema.names)
            return ((wanted & own) | {column for column, _ in equal},)
        case _:
            return tuple(frozenset(input.schema.names) for input in operator.inputs)


def _side(join: WindowJoin, input: Input, wanted: Names, at: int) -> Names:
    condition = columns_of(join.condition) if join.condition is not None else frozenset()
    own = frozenset(input.schema.names)
    assert input.shape.event_time is not None
    return (
        ((wanted | condition) & own) | {pair[at] for pair in join.equal} | {input.shape.event_time}
    )


def _reduced(operator: Operator, wanted: Names) -> Operator:
    match operator:
        case Map(columns=columns):
            kept = tuple(one for one in columns if one[0] in wanted)
            return replace(operator, columns=kept or columns[:1])
        case Aggregate(aggregates=aggregates):
            return replace(
                operator, aggregates=tuple(one for one in aggregates if one[0] in wanted)
            )
        case TableJoin(columns=columns):
            return replace(operator, columns=tuple(one for one in columns if one[0] in wanted))
        case _:
            return operator


def _narrowed(
    join: WindowJoin, inputs: tuple[Input, ...], wanted: Names, working_name: Callable[[], str]
) -> list[Input | Map]:
    """The inputs of a join, each behind a map where it has columns the join does not need."""
    sides: list[Input | Map] = []
    for input, names in zip(inputs, _reads(join, wanted), strict=True):
        kept = tuple(name for name in input.schema.names if name in names)
        columns = tuple((name, Column(name)) for name in kept)
        whole = len(kept) == len(input.schema)
        sides.append(input if whole else Map(working_name(), input, columns))
    return sides


def _all(sets: Iterable[Iterable[str]]) -> Names:
    return frozenset().union(*sets)
