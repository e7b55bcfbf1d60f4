"""How a stream is made of one that runs: what is left to check and compute of its rows.

Rows of the same relation, of which all that are wanted are there, need a filter and a map. Windows
over the same rows, or fewer whole groups of them, are put together from slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.errors import PenstockError
from penstock.model.aggregates import AggregateCall
from penstock.model.canonical import GroupedRows
from penstock.model.canonical_expressions import describe, over_columns
from penstock.model.canonical_stream import CanonicalStream, Conditions
from penstock.model.expressions import Call, Column, Expression, Literal, all_of, transform
from penstock.model.network import Network
from penstock.model.operators import Aggregate, Filter, Input, Map, Operator
from penstock.model.schema import Shape
from penstock.model.slices import FromSlices, SlicedStates, over_rows, slice_of, slices_name
from penstock.model.types import DataType
from penstock.model.windows import Window
from penstock.share.containment import residual


@dataclass(frozen=True)
class OfferedStream:
    """A stream of a network that runs: its meaning, who makes it, and how others read it.

    ``tapped`` if it lies inside its maker and has to be given out first.
    """

    name: str
    network: Network
    canonical: CanonicalStream
    maker: str
    tapped: bool = False

    @property
    def shape(self) -> Shape:
        """The shape of the stream."""
        return self.network.shapes[self.name]


@dataclass(frozen=True)
class OfferedSlices:
    """The slices that an aggregate which runs could give, and who would.

    ``lay_out`` says what they look like; None for an aggregate that cannot give any.
    """

    aggregate: Aggregate
    grouped: GroupedRows
    maker: str
    lay_out: Callable[[Aggregate], SlicedStates | None]

    @property
    def name(self) -> str:
        """The stream of the slices."""
        return slices_name(self.aggregate.name)


def from_stream(
    operator: Operator, wanted: CanonicalStream, offer: OfferedStream
) -> tuple[Operator, ...] | None:
    """What makes an operator's result of a running stream; None if that does not contain it."""
    offered = offer.canonical
    if offered.relation != wanted.relation:
        return None
    left = residual(wanted.conditions, offered.conditions)
    if left is None:
        return None
    names = offer.shape.schema
    known = {describe(meaning): Column(names[name].name) for name, meaning in _in_order(offered)}
    rest = _over(left, known)
    columns = _over((wanted.columns[name.lower()] for name in operator.output.schema.names), known)
    if rest is None or columns is None:
        return None
    checks, source = _filtered(operator.name, Input(offer.name, offer.shape), rest)
    try:
        named = zip(operator.output.schema.names, columns, strict=True)
        reading = Map(operator.name, source, tuple(named))
    except PenstockError:
        return None
    return (*checks, reading) if reading.output == operator.output else None


def _in_order(offered: CanonicalStream) -> list[tuple[str, Expression]]:
    """Columns in an order of their own, so that of two with one meaning the same is taken."""
    return sorted(offered.columns.items(), reverse=True)


def _over(
    meanings: Iterable[Expression], known: Mapping[str, Column]
) -> tuple[Expression, ...] | None:
    """Meanings as expressions over columns; None if one of them is none."""
    found = [over_columns(meaning, known) for meaning in meanings]
    told = tuple(expression for expression in found if expression is not None)
    return told if len(told) == len(found) else None


def _filtered(name: str, source: Input, rest: Conditions) -> tuple[tuple[Operator, ...], Input]:
    """What checks the rest of the conditions, and where the rows that fulfil them are read."""
    if not rest:
        return (), source
    check = Filter(f"{name}_rest", source, all_of(tuple(map(_turned, rest))))
    return (check,), Input(check.name, check.output)


_TURNED = {"<": ">", "<=": ">=", "=": "="}


def _turned(condition: Expression) -> Expression:
    """A canonical comparison with its constant behind what is compared, as people write it."""
    match condition:
        case Call("<" | "<=" | "=" as comparison, (Literal() as constant, value)):
            return Call(_TURNED[comparison], (value, constant))
    return condition


def from_slices(
    operator: Aggregate, wanted: GroupedRows, meaning: CanonicalStream, offer: OfferedSlices
) -> tuple[Operator, ...] | None:
    """What makes an aggregate's result of slices that run; None if they do not contain it.

    Of its rows whole groups may be left out, and groups may be put together, as far as the keys of
    the slices tell. Keys that are doubles are taken as they are only: zeros of both signs are one
    group, and what is computed of them need not be the same.
    """
    given = offer.grouped
    if not _divides(given, wanted):
        return None
    left = residual(wanted.rows.conditions, given.rows.conditions)
    whole = {describe(key): Column(name) for name, key in given.keys.items()}
    schema = offer.aggregate.output.schema
    exact = {
        text: column
        for text, column in whole.items()
        if schema[column.name].type is not DataType.DOUBLE
    }
    rest = None if left is None else _over(left, exact)
    keys = [whole.get(describe(key)) or over_columns(key, exact) for key in wanted.keys.values()]
    served = _served(wanted, offer)
    told = tuple((name, key) for name, key in zip(wanted.keys, keys, strict=True) if key)
    if rest is None or served is None or len(told) < len(keys):
        return None
    slices = offer.lay_out(offer.aggregate)
    if slices is None:
        return None
    checks, source = _filtered(operator.name, Input(offer.name, slices.shape), rest)
    running = dict(offer.aggregate.aggregates)
    states = tuple(
        _columns(slices.states[kept], running[kept], call) for kept, call in served.values()
    )
    calls = tuple((name, call) for name, (_, call) in served.items())
    try:
        made = _over_rows(operator, offer.aggregate, told, calls)
        merged = FromSlices(operator.name, source, made, told, states, meaning)
    except PenstockError:
        return None
    return (*checks, merged) if merged.output == operator.output else None


def _divides(given: GroupedRows, wanted: GroupedRows) -> bool:
    """Whether the wanted windows are made up of whole slices of the given rows."""
    window, running = wanted.window, given.window
    if not isinstance(window, Window) or not isinstance(running, Window):
        return False
    slice_us = slice_of(running).size_us
    if window.size_us % slice_us or window.slide_us % slice_us:
        return False
    has_rows = given.rows.relation == wanted.rows.relation
    return has_rows and given.rows.times[0] == wanted.rows.times[0]


def _over_rows(
    wanted: Aggregate,
    running: Aggregate,
    keys: tuple[tuple[str, Expression], ...],
    calls: tuple[tuple[str, AggregateCall], ...],
) -> Aggregate:
    """The wanted aggregate over the rows that a running one reads."""
    own = over_rows(running)
    return Aggregate(
        wanted.name,
        running.input,
        wanted.window,
        tuple((name, transform(key, own)) for name, key in keys),
        calls,
    )


_KEPT_AS = {"avg": "sum", "stddev": "variance"}
"""Functions that keep the same of rows as others, and finish otherwise."""
_COUNTED_AT = {"sum": -1, "variance": 0}
"""Where among the states of a function is how many values there were."""


def _served(
    wanted: GroupedRows, offer: OfferedSlices
) -> dict[str, tuple[str, AggregateCall]] | None:
    """The result of the offer whose states serve each function, and the function over its rows.

    None if something is wanted that was not kept.
    """
    kept: dict[tuple[str, str], str] = {}
    for name, (function, arguments) in offer.grouped.calls.items():
        kind = _KEPT_AS.get(function, function)
        kept.setdefault((kind, arguments), name)
        if kind in _COUNTED_AT:
            kept.setdefault(("count", arguments), name)
    running, found = dict(offer.aggregate.aggregates), {}
    for name, (function, arguments) in wanted.calls.items():
        served_by = kept.get((_KEPT_AS.get(function, function), arguments))
        if served_by is None:
            return None
        found[name] = served_by, replace(running[served_by], function=function)
    return found


def _columns(states: tuple[str, ...], kept: AggregateCall, call: AggregateCall) -> tuple[str, ...]:
    """Those of the states that a function has to have kept."""
    kind = _KEPT_AS.get(kept.function, kept.function)
    is_count = call.function == "count" and kind in _COUNTED_AT
    return (states[_COUNTED_AT[kind]],) if is_count else states
