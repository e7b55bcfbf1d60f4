"""The operators of a query while it is being put together: working names, rewiring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from penstock.model.expressions import Column
from penstock.model.operators import (
    Input,
    Map,
    Operator,
)
from penstock.model.rewiring import rewire


@dataclass(frozen=True)
class Graph:
    """Operators under working names, each after what it reads, and which one is the result.

    ``owners`` says what each operator's final name begins with, ``wished`` which final name it
    should have if it is still there in the end.
    """

    operators: tuple[Operator, ...]
    result: str
    owners: Mapping[str, str]
    wished: Mapping[str, str]

    @property
    def reads(self) -> Counter[str]:
        """How often each stream is read; the result counts as read once more."""
        inputs = [stream.stream for operator in self.operators for stream in operator.inputs]
        return Counter([*inputs, self.result])


def renamed(operators: Iterable[Operator], names: Mapping[str, str]) -> tuple[Operator, ...]:
    """The operators under other names, reading each other by those."""
    return tuple(
        replace(rewire(operator, _inputs(operator, names)), name=names[operator.name])
        for operator in operators
    )


def _inputs(operator: Operator, names: Mapping[str, str]) -> tuple[Input, ...]:
    return tuple(
        Input(names.get(stream.stream, stream.stream), stream.shape) for stream in operator.inputs
    )


def in_reading_order(graph: Graph) -> Graph:
    """With what the result does not depend on dropped, and inputs in order from the left."""
    by_name = {operator.name: operator for operator in graph.operators}
    found: dict[str, Operator] = {}

    def visit(stream: str) -> None:
        if stream in by_name and stream not in found:
            for input in by_name[stream].inputs:
                visit(input.stream)
            found[stream] = by_name[stream]

    visit(graph.result)
    return replace(graph, operators=tuple(found.values()))


class OperatorDrafts:
    """Collects the operators of a query as its clauses are understood."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {name.lower() for name in taken}
        self._numbers = count(1)
        self._operators: list[Operator] = []
        self._owners: dict[str, str] = {}
        self._wished: dict[str, str] = {}

    def add(self, owner: str, make: Callable[[str], Operator]) -> Input:
        """Adds the operator ``make`` builds for a working name; gives its output."""
        name = self.working_name()
        operator = make(name)
        self._operators.append(operator)
        self._owners[name] = owner
        return Input(name, operator.output)

    def working_name(self) -> str:
        """A name nobody else has."""
        return next(name for at in self._numbers if (name := f"draft_{at}") not in self._taken)

    def wish(self, stream: str, name: str) -> None:
        """Lets the operator behind ``stream``, if it is of this query, be called ``name``."""
        if stream in self._owners:
            self._wished.setdefault(stream, name)

    def graph(self, result: Input, owner: str) -> Graph:
        """What was collected; a result that is a stream from elsewhere is passed on as it is."""
        if result.stream not in self._owners:
            result = self.add(owner, lambda name: Map(name, result, identity(result)))
        return Graph(tuple(self._operators), result.stream, self._owners, self._wished)


def identity(input: Input) -> tuple[tuple[str, Column], ...]:
    """The columns of a map that changes nothing."""
    return tuple((name, Column(name)) for name in input.schema.names)


def is_identity(operator: Operator) -> bool:
    """Whether an operator is a map that changes nothing."""
    return isinstance(operator, Map) and operator.columns == identity(operator.input)
