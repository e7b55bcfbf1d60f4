"""A network as text of at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from penstock.errors import listed
from penstock.lang.explain.words import (
    details_words,
    manner_words,
    query_words,
    shape_time_words,
    source_words,
    stream_time_words,
)
from penstock.model.devices import DeviceSection
from penstock.model.estimates import OperatorEstimate
from penstock.model.network import Network
from penstock.model.operators import Operator
from penstock.model.schema import Shape
from penstock.model.sources import Stream

WIDTH = 100
_WIDEST_NAME = 28
_NO_BREAK = "\N{NO-BREAK SPACE}"
_HEADINGS = ("operator", "cost in us", "rows in/s", "rows out/in", "load")

Costs = Mapping[str, OperatorEstimate]


def explain_text(
    network: Network, costs: Costs | None = None, devices: DeviceSection | None = None
) -> str:
    """The network's streams, operators and queries, each with what is known about it.

    ``costs`` gives estimates by operator name; they are shown as a table. ``devices`` are those
    that hear queries. The same network gives the same text.
    """
    names = [
        *(stream.name for stream in network.streams),
        *(operator.name for operator in network.operators),
    ]
    margin = 4 + max((len(name) for name in names if len(name) <= _WIDEST_NAME), default=0)
    parts = [
        _section(
            "streams", [(stream.name, _stream_lines(stream)) for stream in network.streams], margin
        ),
        _section(
            "operators",
            [(operator.name, _lines(operator)) for operator in network.operators],
            margin,
        ),
        _section(
            "queries",
            [(query.name, [query_words(query, network, devices)]) for query in network.queries],
            margin,
        ),
        _estimates(network, costs or {}),
    ]
    return "\n".join(part for part in parts if part)


def _section(title: str, entries: Sequence[tuple[str, Sequence[str]]], margin: int) -> str:
    if not entries:
        return ""
    shown = (line for name, lines in entries for line in _entry(name, lines, margin))
    return "\n".join([title, *shown, ""])


def _entry(name: str, lines: Sequence[str], margin: int) -> Iterator[str]:
    wrapped = [part for line in lines for part in textwrap.wrap(line, WIDTH - margin)]
    head = f"  {name}"
    if len(head) + 2 > margin:
        yield from textwrap.wrap(name, WIDTH, initial_indent="  ", subsequent_indent="  ")
        head = ""
    for line in wrapped:
        yield f"{head:{margin}}{line.replace(_NO_BREAK, ' ')}"
        head = ""


def _stream_lines(stream: Stream) -> list[str]:
    return [source_words(stream.source), _columns(stream.shape), stream_time_words(stream)]


def _lines(operator: Operator) -> list[str]:
    read = listed(input.stream for input in operator.inputs)
    lines = [f"{operator.kind} of {read}; {manner_words(operator)}"]
    if operator.details:
        lines.append(details_words(operator))
    gives = "gives" if tuple(operator.outputs) == (operator.name,) else _gives(operator)
    return [*lines, f"{gives} {_columns(operator.output)}", shape_time_words(operator.output)]


def _columns(shape: Shape) -> str:
    """The columns; a line may end between two but not inside one."""
    return ", ".join(str(field).replace(" ", _NO_BREAK) for field in shape.schema)


def _gives(operator: Operator) -> str:
    return f"{listed(operator.outputs)} give" if operator.outputs else "gives"


def _estimates(network: Network, costs: Costs) -> str:
    rows = [
        (operator.name, *_cells(costs[operator.name]))
        for operator in network.operators
        if operator.name in costs
    ]
    if not rows:
        return ""
    table = [_HEADINGS, *rows]
    names, *numbers = (max(map(len, column)) for column in zip(*table, strict=True))
    room = WIDTH - 2 - sum(width + 2 for width in numbers)
    lines = [_row(row, min(names, room), numbers) for row in table]
    return "\n".join(["estimates", *lines, ""])


def _cells(estimate: OperatorEstimate) -> tuple[str, ...]:
    return (
        _number(estimate.cost_us, "{:,.3g}"),
        _number(estimate.rate_per_s, "{:,.0f}"),
        _number(estimate.selectivity, "{:.3g}"),
        _number(estimate.load, "{:.3f}"),
    )


def _number(value: float | None, form: str) -> str:
    return "?" if value is None else form.format(value)


def _row(cells: Sequence[str], names: int, numbers: Sequence[int]) -> str:
    name = cells[0] if len(cells[0]) <= names else f"{cells[0][: names - 1]}…"
    tail = "".join(f"  {cell:>{width}}" for cell, width in zip(cells[1:], numbers, strict=True))
    return f"  {name:<{names}}{tail}"
