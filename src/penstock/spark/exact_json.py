"""Values as text that is read back equal in every bit and type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def encoded(value: object) -> str:
    """A value made of numbers, texts, None, tuples, lists and dicts, as text.

    >>> encoded((0.1, [True, None]))
    '["tuple",0.1,["list",true,null]]'
    """
    return json.dumps(_packed(value), separators=(",", ":"))


def decoded(text: str) -> Any:
    """The value that was encoded, equal in every bit and type.

    >>> decoded(encoded({"rate": (0.1, 2, "x")}))
    {'rate': (0.1, 2, 'x')}
    """
    return _unpacked(json.loads(text))


def _packed(value: object) -> object:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, *map(_packed, value)]
    if isinstance(value, Mapping):
        return ["dict", *([_packed(key), _packed(item)] for key, item in value.items())]
    raise TypeError(f"a value of type {type(value).__name__} cannot be carried: {value!r}")


def _unpacked(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, *items = value
    if kind == "dict":
        return {_unpacked(key): _unpacked(item) for key, item in items}
    unpacked = map(_unpacked, items)
    return tuple(unpacked) if kind == "tuple" else list(unpacked)
