"""Records as plain values that do not depend on how Python prints them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from pathlib import PurePath
from typing import Any, get_args

from penstock.model.canonical_expressions import describe, normalise
from penstock.model.expressions import Expression, literal_sql
from penstock.model.operators import Input, Operator

Plain = Any
"""Texts, whole numbers, booleans, None, and lists and dictionaries of such."""

InputOf = Callable[[Input], Plain]


def encode(value: object, input_of: InputOf | None = None) -> Plain:
    """A value as something JSON can write, the same in every process and every version.

    Expressions are normalised. A field that has its default value is left out, so that a field
    added later does not change what was encoded before.

    >>> from penstock.model.windows import Window
    >>> encode(Window.of(60))
    {'record': 'Window', 'size_us': 60, 'slide_us': 60}
    """
    match value:
        case None | bool() | int() | str() if not isinstance(value, Enum):
            return value
        case float():
            return {"double": repr(value)}
        case Enum():
            return str(value.value)
        case PurePath():
            return str(value)
        case datetime() | date() | timedelta():
            return literal_sql(value)
        case Mapping():
            return {str(key): encode(value[key], input_of) for key in value}
        case tuple() | list():
            return [encode(member, input_of) for member in value]
    if isinstance(value, get_args(Expression)):
        return describe(normalise(value))
    if isinstance(value, Input) and input_of is not None:
        return input_of(value)
    if is_dataclass(value):
        return {"record": type(value).__name__, **encode_fields(value, input_of=input_of)}
    raise TypeError(f"a {type(value).__name__} has no plain form")


def encode_fields(
    record: object,
    only: Collection[str] = (),
    leave_out: Collection[str] = (),
    input_of: InputOf | None = None,
) -> dict[str, Plain]:
    """The fields of a record that are not at their default, by name; an operator's name is none.

    ``only`` limits them to some, ``leave_out`` takes some away.
    """
    hidden = {*leave_out, *(("name",) if isinstance(record, Operator) else ())}
    found: dict[str, Plain] = {}
    for field in fields(record):  # type: ignore[arg-type]
        if field.name in hidden or (only and field.name not in only):
            continue
        encoded = encode(getattr(record, field.name), input_of)
        if not _has_default(field) or encoded != encode(_default(field), input_of):
            found[field.name] = encoded
    return found


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default
