"""Plans as JSON text and back: the whole model, every class by its name.

Operators, expressions, windows, sources and sinks are told apart by a tag. What is read is built by
its constructor, so that it is checked as anything else that is built.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import cache, lru_cache, partial
from math import isfinite
from types import NoneType
from typing import Any, Generic, TypeVar, get_args

from cattrs import BaseValidationError, Converter
from cattrs.strategies import configure_tagged_union, include_subclasses

from penstock.errors import PenstockError, RunError
from penstock.model import expressions
from penstock.model.operators import Operator
from penstock.model.retime import Retime
from penstock.model.settings import Setting
from penstock.model.slices import FromSlices, Slices
from penstock.model.sources import Options, Sink, Source
from penstock.model.windows import AnyWindow

Plan = TypeVar("Plan")

_TAG = "is"
_KEPT = 4096
"""Texts of one kind that are kept as they were read."""
_US = timedelta(microseconds=1)


def encode_plan(plan: object) -> str:
    """A plan, or a part of one, as JSON.

    >>> encode_plan(expressions.Column("kwh"))
    '{"name": "kwh"}'
    """
    return json.dumps(_converter().unstructure(plan), allow_nan=False)


def decode_plan(text: str, kind: type[Plan]) -> Plan:
    """What was written as JSON; raises if it is not of this kind."""
    try:
        return _converter().structure(json.loads(text), kind)
    except (ValueError, KeyError, TypeError, BaseValidationError, PenstockError) as error:
        raise RunError(
            f"a recorded plan cannot be read ({type(error).__name__}: {error})",
            hint="It is damaged, or another version of Penstock has written it.",
        ) from error


class PlanCodec(Generic[Plan]):
    """Writes plans of one kind as JSON and reads them, for records of the catalog.

    The catalog is read over and over; a text that was read not long ago is not read again.
    """

    def __init__(self, kind: type[Plan]) -> None:
        self._read: Callable[[str], Plan] = lru_cache(_KEPT)(partial(decode_plan, kind=kind))

    def encode(self, plan: Plan) -> str:
        """The plan as JSON."""
        return encode_plan(plan)

    def decode(self, text: str) -> Plan:
        """The plan in a text; raises if it is none."""
        return self._read(text)


@cache
def _converter() -> Converter:
    made = Converter(unstruct_collection_overrides={frozenset: sorted})
    tagged = partial(configure_tagged_union, tag_name=_TAG)
    made.register_unstructure_hook(expressions.Literal, _plain_literal)
    made.register_structure_hook(
        expressions.Literal, lambda told, _: expressions.Literal(_scalar(told["value"]))
    )
    made.register_unstructure_hook_func(lambda kind: kind == Options, _plain_scalar)
    made.register_structure_hook_func(lambda kind: kind == Options, lambda told, _: _scalar(told))
    made.register_structure_hook_factory(_is_optional_union, partial(_optional, made))
    made.register_unstructure_hook_factory(_is_optional_union, partial(_plain_optional, made))
    # Where a setting stood is of use only while its text is being read.
    made.register_unstructure_hook(Setting, lambda setting: _plain_scalar(setting.value))
    made.register_structure_hook(Setting, lambda told, _: Setting(_scalar(told)))
    for union in (expressions.Expression, AnyWindow, Source, Sink):
        tagged(union, made)
    # All classes of operators have to be loaded by now; these are in files of their own.
    assert all(issubclass(kind, Operator) for kind in (Retime, Slices, FromSlices))
    include_subclasses(Operator, made, union_strategy=tagged)
    return made


def _is_optional_union(kind: Any) -> bool:
    """Whether it is one of several classes, or None."""
    arguments = get_args(kind)
    return NoneType in arguments and len(arguments) > 2


def _without_none(kind: Any) -> Any:
    whole, *more = (choice for choice in get_args(kind) if choice is not NoneType)
    for choice in more:
        whole |= choice
    return whole


def _optional(made: Converter, kind: Any) -> Callable[[Any, Any], Any]:
    inner = _without_none(kind)
    return lambda told, _: None if told is None else made.structure(told, inner)


def _plain_optional(made: Converter, kind: Any) -> Callable[[Any], Any]:
    inner = _without_none(kind)
    return lambda value: None if value is None else made.unstructure(value, inner)


def _plain_literal(literal: expressions.Literal) -> dict[str, object]:
    return {"value": _plain_scalar(literal.value)}


def _plain_scalar(value: object) -> object:
    """A constant, or a list or mapping of them, with those JSON has no word for by their types."""
    match value:
        case float() if not isfinite(value):
            return {"$float": str(value)}
        case datetime():
            return {"$datetime": value.isoformat()}
        case date():
            return {"$date": value.isoformat()}
        case timedelta():
            return {"$us": value // _US}
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_plain_scalar(item) for item in value]
    return {str(key): _plain_scalar(item) for key, item in dict(value).items()}  # type: ignore[call-overload]


def _scalar(told: Any) -> Any:
    if isinstance(told, list):
        return [_scalar(item) for item in told]
    if not isinstance(told, dict):
        return told
    match told:
        case {"$float": str(text)}:
            return float(text)
        case {"$datetime": str(text)}:
            return datetime.fromisoformat(text)
        case {"$date": str(text)}:
            return date.fromisoformat(text)
        case {"$us": int(number)}:
            return number * _US
    return {key: _scalar(item) for key, item in told.items()}
