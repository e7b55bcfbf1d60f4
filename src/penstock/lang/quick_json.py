"""The quick way to read files that programs write: JSON, without the places of a YAML text.

Anything that is not quite right is odd, and left to the slow way, which says where it is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from penstock.errors import InputError

Record = Mapping[str, Any]
_T = TypeVar("_T")


class OddJson(Exception):
    """Something is not as expected."""


def built_quickly(text: str, build: Callable[[Record], _T]) -> _T | None:
    """What ``build`` makes of the JSON object in ``text``; None where anything about it is odd.

    >>> built_quickly('{"a": 1}', lambda record: record["a"])
    1
    >>> built_quickly("a: 1", dict) is None, built_quickly('{"a": 1, "a": 2}', dict) is None
    (True, True)
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        return build(json.loads(text, object_pairs_hook=_unique))
    except (OddJson, InputError, ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise OddJson
    return record


def field_values(
    record: object, names: Mapping[str, str], texts: tuple[str, ...], flags: tuple[str, ...]
) -> dict[str, Any]:
    """The values by the names of the fields they are for, each of the right type: else odd."""
    if not isinstance(record, dict) or not record.keys() <= names.keys():
        raise OddJson
    for key, value in record.items():
        wanted = str if key in texts else bool if key in flags else (int, float)
        if not isinstance(value, wanted) or (wanted == (int, float) and isinstance(value, bool)):
            raise OddJson
    return {names[key]: value for key, value in record.items()}


def names_in(value: object) -> tuple[str, ...]:
    """A list of texts: else odd."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise OddJson
    return tuple(value)
