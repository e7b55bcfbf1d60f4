"""The final names of a query's operators."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.lang.sql.graph import Graph, renamed
from penstock.lang.sql.scope import fresh
from penstock.model.expressions import Call, Column, Expression, walk
from penstock.model.operators import Operator


def derived_name(function: str, arguments: tuple[Expression, ...]) -> str:
    """A name that tells what a column without one is.

    >>> derived_name("sum", (Column("kwh"),)), derived_name("", (Call("upper", (Column("a"),)),))
    ('sum_kwh', 'upper_a')
    """
    parts = [part for argument in arguments for part in walk(argument)]
    functions = [part.function for part in parts[:1] if isinstance(part, Call) and not function]
    columns = [part.name for part in parts if isinstance(part, Column)]
    words = [function, *(word for word in functions if word.isidentifier()), *columns]
    return "_".join(dict.fromkeys(word for word in words if word)) or "value"


def named(graph: Graph, query: str, taken: Iterable[str]) -> tuple[Operator, ...]:
    """The operators, the result called like the query, the others after what they belong to.

    An operator of query ``q`` is called ``q_<kind>``, the result of its common table expression
    ``c`` is called ``q_c``; a second one of the same name gets ``_2`` after it.
    """
    return renamed(graph.operators, _final_names(graph, query, taken))


def _final_names(graph: Graph, query: str, taken: Iterable[str]) -> dict[str, str]:
    names = {graph.result: query}
    present = [operator for operator in graph.operators if operator.name != graph.result]
    used = [*taken, query]
    for operator in present:
        if operator.name in graph.wished:
            names[operator.name] = fresh(graph.wished[operator.name], used)
            used.append(names[operator.name])
    for operator in present:
        if operator.name not in names:
            wanted = f"{graph.owners[operator.name]}_{operator.kind}"
            names[operator.name] = fresh(wanted, used)
            used.append(names[operator.name])
    return names
