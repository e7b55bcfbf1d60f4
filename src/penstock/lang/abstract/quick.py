"""The quick way to read an abstract network: large ones are written by programs, as JSON.

Anything that is not quite right is left to the slow way, which says where it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from penstock.lang.quick_json import OddJson, Record, built_quickly, field_values, names_in
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator

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
    "fixed": "fixed_cpu",
}
_NODE = {"cpu": "cpu", "bandwidth": "bandwidth_per_s"}
_NETWORK = {"bandwidth": "bandwidth_per_s", "transfer_cost": "transfer_cost_s"}
_TEXTS = ("kind", "table", "unit", "node")
_FLAGS = ("varying", "sticky")


def network_of_json(text: str) -> AbstractNetwork | None:
    """The network, or None where the text is not JSON or anything about it is odd."""
    return built_quickly(text, _network)


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
        raise OddJson
    return AbstractNetwork(
        _each(
            record["inputs"], lambda name, record: AbstractInput(name, **_values(record, _INPUT))
        ),
        _each(record["operators"], _operator),
        _each(record["nodes"], lambda name, record: AbstractNode(name, **_values(record, _NODE))),
        **_values(record.get("network", {}), _NETWORK),
    )


def _each(section: object, read: Callable[[str, Record], _T]) -> tuple[_T, ...]:
    if not isinstance(section, dict):
        raise OddJson
    return tuple(read(name, record) for name, record in section.items())


def _operator(name: str, record: Record) -> AbstractOperator:
    if not isinstance(record, dict) or "cost" not in record:
        raise OddJson
    rest = {key: value for key, value in record.items() if key != "inputs"}
    if rest.get("selectivity") == "varying":
        rest = {**rest, "selectivity": 1.0, "varying": True}
    return AbstractOperator(name, names_in(record.get("inputs")), **_values(rest, _OPERATOR))


def _values(record: object, names: Mapping[str, str]) -> dict[str, Any]:
    return field_values(record, names, _TEXTS, _FLAGS)
