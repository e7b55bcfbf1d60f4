"""Whether two queries do the same thing, whatever their intermediate operators are called."""

from __future__ import annotations

from dataclasses import replace

from penstock.lang.sql.graph import Graph, renamed
from penstock.lang.sql.tidy import PASSES
from penstock.model.expressions import all_of, conjuncts
from penstock.model.operators import Filter, Operator, WindowJoin


def same_operators(one: tuple[Operator, ...], other: tuple[Operator, ...]) -> bool:
    """Whether the operators are the same but for names and for what could be merged.

    The last operator of each is its result; what is read from elsewhere must be the same stream.
    """
    return _canonical(one) == _canonical(other)


def _canonical(operators: tuple[Operator, ...]) -> tuple[Operator, ...]:
    graph = Graph(operators, operators[-1].name, {}, {})
    for simplify in PASSES:
        graph = simplify(graph)
    names = {operator.name: f"operator_{at}" for at, operator in enumerate(graph.operators)}
    return tuple(_flat(operator) for operator in renamed(graph.operators, names))


def _flat(operator: Operator) -> Operator:
    """The operator with its condition as a plain list of parts."""
    match operator:
        case Filter(predicate=predicate):
            return replace(operator, predicate=all_of(conjuncts(predicate)))
        case WindowJoin(condition=condition) if condition is not None:
            return replace(operator, condition=all_of(conjuncts(condition)))
        case _:
            return operator
