"""The graph a person would draw: no operator that could be part of the one before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.lang.sql.graph import Graph, in_reading_order, is_identity
from penstock.model.expressions import (
    Column,
    Expression,
    Literal,
    all_of,
    conjuncts,
    transform,
    walk,
)
from penstock.model.operators import Filter, Input, Map, Operator
from penstock.model.rewiring import rewire
from penstock.model.schema import Shape


def drop_identities(graph: Graph) -> Graph:
    """Without the maps that change nothing; what read them reads what they read.

    Only a result that is just a stream from elsewhere needs one, to have a name of its own.
    """
    own = {operator.name for operator in graph.operators}
    same: dict[str, str] = {}
    kept = []
    for operator in graph.operators:
        operator = _relinked(operator, same, {})
        stream = operator.inputs[0].stream
        if is_identity(operator) and (stream in own or operator.name != graph.result):
            same[operator.name] = stream
        else:
            kept.append(operator)
    wished: dict[str, str] = {}
    for stream, name in graph.wished.items():
        wished.setdefault(same.get(stream, stream), name)
    result = same.get(graph.result, graph.result)
    return replace(graph, operators=tuple(kept), result=result, wished=wished)


def merge_operators(graph: Graph) -> Graph:
    """With filters after filters and maps after maps made one, where nobody else reads between."""
    reads = graph.reads
    kept: dict[str, Operator] = {}
    wished = dict(graph.wished)
    shapes: dict[str, Shape] = {}
    for operator in graph.operators:
        operator = _relinked(operator, {}, shapes)
        below = kept.get(operator.inputs[0].stream)
        merged = _merged(operator, below) if below and reads[below.name] == 1 else None
        if below is not None and merged is not None:
            del kept[below.name]
            if _is_selection(operator) and below.name in wished:
                wished.setdefault(operator.name, wished[below.name])
        kept[operator.name] = merged or operator
        shapes[operator.name] = kept[operator.name].output
    return replace(graph, operators=tuple(kept.values()), wished=wished)


def _relinked(operator: Operator, same: Mapping[str, str], shapes: Mapping[str, Shape]) -> Operator:
    """The operator reading what its inputs have become."""
    inputs = tuple(
        Input(same.get(stream.stream, stream.stream), shapes.get(stream.stream, stream.shape))
        for stream in operator.inputs
    )
    return rewire(operator, inputs)


def _is_selection(operator: Operator) -> bool:
    """Whether an operator only picks and renames columns."""
    return isinstance(operator, Map) and all(
        isinstance(expression, Column) for _, expression in operator.columns
    )


def _merged(operator: Operator, below: Operator) -> Operator | None:
    if isinstance(operator, Filter) and isinstance(below, Filter):
        both = (*conjuncts(below.predicate), *conjuncts(operator.predicate))
        return Filter(operator.name, below.input, all_of(both))
    if isinstance(operator, Map) and isinstance(below, Map):
        return _composed(operator, below)
    return None


def _composed(operator: Map, below: Map) -> Map | None:
    """One map for two, unless that would compute something twice."""
    inner = dict(below.columns)
    used = Counter(
        part.name
        for _, expression in operator.columns
        for part in walk(expression)
        if isinstance(part, Column)
    )
    if any(used[name] > 1 and not isinstance(inner[name], Column | Literal) for name in used):
        return None

    def substituted(part: Expression) -> Expression | None:
        return inner[part.name] if isinstance(part, Column) else None

    columns = tuple(
        (name, transform(expression, substituted)) for name, expression in operator.columns
    )
    return Map(operator.name, below.input, columns)


# What is done to a query once it is understood, in this order.
PASSES: tuple[Callable[[Graph], Graph], ...] = (
    in_reading_order,
    drop_identities,
    merge_operators,
    in_reading_order,
)
