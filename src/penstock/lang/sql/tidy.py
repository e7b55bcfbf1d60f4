"""The graph a person would draw: no operator that could be part of the one before it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from penstock.lang.sql.graph import Graph, is_identity, rewired
from penstock.model.expressions import Column, Expression, Literal, all_of, conjuncts, transform, walk
from penstock.model.operators import Filter, Input, Map, Operator
from penstock.model.schema import Shape


def merge_operators(graph: Graph) -> Graph:
    """With maps that change nothing dropped, and filters after filters and maps after maps merged.

    Only what nobody else reads is merged into its reader.
    """
    reads = graph.reads
    kept: dict[str, Operator] = {}
    renamed: dict[str, str] = {}
    shapes: dict[str, Shape] = {}
    for operator in graph.operators:
        streams = [renamed.get(one.stream, one.stream) for one in operator.inputs]
        inputs = tuple(
            Input(stream, shapes.get(stream, one.shape))
            for stream, one in zip(streams, operator.inputs, strict=True)
        )
        operator = rewired(operator, inputs)
        below = kept.get(streams[0])
        if is_identity(operator) and (below is not None or operator.name != graph.result):
            renamed[operator.name] = streams[0]
            reads[streams[0]] += reads[operator.name] - 1
            continue
        if below is not None and reads[below.name] == 1:
            merged = _merged(operator, below)
            if merged is not None:
                del kept[below.name]
                operator = merged
        kept[operator.name] = operator
        shapes[operator.name] = operator.output
    result = renamed.get(graph.result, graph.result)
    wished: dict[str, str] = {}
    for stream, name in graph.wished.items():
        wished.setdefault(renamed.get(stream, stream), name)
    return replace(graph, operators=tuple(kept.values()), result=result, wished=wished)


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

    columns = tuple((name, transform(one, substituted)) for name, one in operator.columns)
    return Map(operator.name, below.input, columns)
