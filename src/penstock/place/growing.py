"""Queries added to a deployment that has run before: they share nothing with those before them.

What runs already has its state and goes on as it is. A query that comes later begins at the start
of its streams, so the results of others that it reads are computed again for it, in copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.model.network import Network, Query
from penstock.model.operators import Operator, SqlWrite
from penstock.model.rewiring import copy_operator, read_under


def grown(network: Network, generations: Mapping[str, int]) -> Network:
    """The network in which queries share operators with their own generation alone.

    ``generations`` numbers the queries by when they were added; the first are as they were.
    Copies are called after their originals and the generation that they are for.
    """
    last = max((generations[query.name] for query in network.queries), default=0)
    first = _first_wanted(network, generations)
    operators = [operator for operator in network.operators if first.get(operator.name, 0) == 0]
    queries = {query.name: query for query in network.queries}
    for generation in range(1, last + 1):
        mine = [query for query in network.queries if generations[query.name] == generation]
        made, names = _apart(network, mine, generation, first)
        operators += made
        queries |= {query.name: _renamed(query, names) for query in mine}
    return Network(network.streams, tuple(operators), tuple(queries.values()))


def _renamed(query: Query, names: Mapping[str, str]) -> Query:
    """The query of operators some of which are copies: what was written names others."""
    is_copied = any(name != former for former, name in names.items())
    stream = names.get(query.stream, query.stream)
    return replace(query, stream=stream, text="" if is_copied else query.text)


def _first_wanted(network: Network, generations: Mapping[str, int]) -> dict[str, int]:
    """The generation of the first query that wants each operator."""
    found: dict[str, int] = {}
    for query in sorted(network.queries, key=lambda query: -generations[query.name]):
        for stream in network.upstream([query.stream]):
            if stream in network.producers:
                found[network.producers[stream].name] = generations[query.name]
    return found


def _apart(
    network: Network, queries: list[Query], generation: int, first: Mapping[str, int]
) -> tuple[list[Operator], dict[str, str]]:
    """The operators behind some queries, those of others as copies; and what streams are called."""
    behind = network.upstream(query.stream for query in queries)
    made: list[Operator] = []
    names: dict[str, str] = {}
    for operator in network.operators:
        if behind.isdisjoint(operator.outputs):
            continue
        mine = first[operator.name] == generation
        if isinstance(operator, SqlWrite) and not mine:
            # It is written once.
            stream = operator.input.stream
            names[operator.name] = names.get(stream, stream)
            continue
        copy = read_under(operator, names)
        copy = copy if mine else copy_operator(copy, f"{operator.name}_again_{generation}")
        made.append(copy)
        names |= zip(operator.outputs, copy.outputs, strict=True)
    return made, names
