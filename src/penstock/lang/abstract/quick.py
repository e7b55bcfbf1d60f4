"""The quick way to read an abstract network: large ones are written by programs, as JSON.

Anything that is not quite right is left to the slow way, which says where it is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from penstock.errors import InputError
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator

Record = Mapping[str, Any]
_T = TypeVar("_T")

_INPUT = {
    "rate": "rate_per_s",
    "lower": "lower_per_s",
    "peak": "peak_per_s",
    "tuple_bytes": "tuple_bytes",
}
_OPERATOR = {
    "kind": "kind",
    "cost": "cost_s",
    "selectivity": "selectivity",
    "window": "window_s",
    "table": "table",
    "unit": "unit",
    "varying": "varying",
    "sticky": "sticky",
    "node": "node",
    "tuple_bytes": "tuple_bytes",
}
_NODE = {"cpu": "cpu", "bandwidth": "bandwidth_per_s"}
_NETWORK = {"bandwidth": "bandwidth_per_s", "transfer_cost": "transfer_cost_s"}
_TEXTS = ("kind", "table", "unit", "node")
_FLAGS = ("varying", "sticky")


class _Odd(Exception):
    """Something is not as expected."""


def network_of_json(text: str) -> AbstractNetwork | None:
    """The network, or None where the text is not JSON or anything about it is odd."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return _network(json.loads(text, object_pairs_hook=_unique))
    except (_Odd, InputError, ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise _Odd
    return record


def _network(record: Record) -> AbstractNetwork:
    if (
        not {"inputs", "operators", "nodes"}
        <= record.keys()
        <= {
            "inputs",
            "operators",
            "nodes",
            "network",
        }
    ):
        raise _Odd
    return AbstractNetwork(
        _each(record["inputs"], lambda name, one: AbstractInput(name, **_values(one, _INPUT))),
        _each(record["operators"], _operator),
        _each(record["nodes"], lambda name, one: AbstractNode(name, **_values(one, _NODE))),
        **_values(record.get("network", {}), _NETWORK),
    )


def _each(section: object, read: Callable[[str, Record], _T]) -> tuple[_T, ...]:
    if not isinstance(section, dict):
        raise _Odd
    return tuple(read(name, one) for name, one in section.items())


def _operator(name: str, record: Record) -> AbstractOperator:
    if not isinstance(record, dict) or "cost" not in record:
        raise _Odd
    inputs = record.get("inputs")
    if not isinstance(inputs, list) or not all(isinstance(one, str) for one in inputs):
        raise _Odd
    rest = {key: value for key, value in record.items() if key != "inputs"}
    if rest.get("selectivity") == "varying":
        rest = {**rest, "selectivity": 1.0, "varying": True}
    return AbstractOperator(name, tuple(inputs), **_values(rest, _OPERATOR))


def _values(record: object, names: Mapping[str, str]) -> dict[str, Any]:
    """The values by the names of the fields they are for, each of the right type."""
    if not isinstance(record, dict) or not record.keys() <= names.keys():
        raise _Odd
    for key, value in record.items():
        wanted = str if key in _TEXTS else bool if key in _FLAGS else (int, float)
        if not isinstance(value, wanted) or (wanted == (int, float) and isinstance(value, bool)):
            raise _Odd
    return {names[key]: value for key, value in record.items()}
