"""Which columns a fragment needs of what it reads: less to read, to ship and to remember."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.expressions import columns_of
from penstock.model.fragments import Fragment
from penstock.model.network import Network
from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
    Map,
    Operator,
    Switch,
    TableJoin,
    WindowJoin,
)
from penstock.model.slices import Slices

Names = frozenset[str]


def needed_columns(network: Network, fragment: Fragment) -> Mapping[str, tuple[str, ...]]:
    """The columns needed of every stream inside and before the fragment, in schema order."""
    needed: dict[str, Names] = {fragment.output: _all(network, fragment.output)}
    for operator in reversed(fragment.operators):
        wanted = frozenset().union(
            *(needed.get(output, frozenset()) for output in operator.outputs)
        )
        for input, names in zip(operator.inputs, _of_inputs(operator, wanted), strict=True):
            needed[input.stream] = needed.get(input.stream, frozenset()) | names
    return {stream: _in_order(network, stream, names) for stream, names in needed.items()}


def _all(network: Network, stream: str) -> Names:
    return frozenset(network.shapes[stream].schema.names)


def _in_order(network: Network, stream: str, names: Names) -> tuple[str, ...]:
    folded = {name.lower() for name in names}
    schema = network.shapes[stream].schema
    kept = tuple(name for name in schema.names if name.lower() in folded)
    # A batch without columns has no row count: count(*) still needs one.
    return kept or schema.names[:1]


def _of_inputs(operator: Operator, wanted: Names) -> tuple[Names, ...]:
    match operator:
        case Filter(predicate=predicate):
            return (wanted | columns_of(predicate),)
        case Switch(cases=cases):
            return (wanted.union(*(columns_of(condition) for _, condition in cases)),)
        case Map(columns=columns):
            return (frozenset().union(*(columns_of(expression) for _, expression in columns)),)
        case Aggregate():
            return (_of_aggregate(operator),)
        case Slices():
            # They are what the aggregate has kept.
            return (frozenset(),)
        case WindowJoin():
            return _of_join(operator, wanted)
        case TableJoin(input=input, equal=equal):
            return (_among(input, wanted) | {left for left, _ in equal},)
        case _:
            return tuple(frozenset(input.schema.names) for input in operator.inputs)


def _of_aggregate(operator: Aggregate) -> Names:
    used = [columns_of(key) for _, key in operator.keys]
    used += [columns_of(argument) for _, call in operator.aggregates for argument in call.arguments]
    event_time = operator.input.shape.event_time
    assert event_time is not None
    return frozenset({event_time}).union(*used)


def _of_join(operator: WindowJoin, wanted: Names) -> tuple[Names, Names]:
    if operator.condition is not None:
        wanted |= columns_of(operator.condition)
    sides = []
    for at, input in enumerate(operator.inputs):
        keys = {pair[at] for pair in operator.equal}
        event_time = input.shape.event_time
        assert event_time is not None
        sides.append(_among(input, wanted) | keys | {event_time})
    return sides[0], sides[1]


def _among(input: Input, wanted: Names) -> Names:
    folded = {name.lower() for name in wanted}
    return frozenset(name for name in input.schema.names if name.lower() in folded)
