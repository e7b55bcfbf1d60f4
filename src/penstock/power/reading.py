"""Reading a problem file: text in, a checked problem out, errors that point at the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from penstock.errors import InputError
from penstock.lang.deployment.yamlfile import Section, Value, YamlFile
from penstock.lang.files import text_of
from penstock.lang.quick_json import OddJson, Record, built_quickly, field_values, names_in
from penstock.model.devices import Broadcast, DeviceProfile
from penstock.power.problem import (
    ChainOperator,
    ChainQuery,
    ChainSource,
    PowerProblem,
    check_operator,
    operator_label,
)

_SECTIONS = ("broadcast", "sources", "devices", "queries")
_BROADCAST = {
    "organisation": "organisation",
    "bandwidth": "bandwidth_per_s",
    "cycle": "cycle_s",
    "raw_cut": "raw_cut",
    "power_up": "power_up_j",
    "index_entry": "index_entry_bytes",
    "descriptor": "descriptor_bytes",
}
_SOURCE = {"rate": "rate_per_s", "tuple_bytes": "tuple_bytes"}
_DEVICE = {
    "speed": "speed_per_s",
    "processing_power": "processing_w",
    "receiving_power": "receiving_w",
    "battery": "battery_j",
}
_OPERATOR = {
    "cycles": "cycles",
    "selectivity": "selectivity",
    "projectivity": "projectivity",
    "kind": "kind",
    "name": "name",
}
_QUERY = ("source", "devices", "operators", "cut")
_TEXTS, _FLAGS = ("organisation", "kind", "name"), ("raw_cut",)
_OPTIONAL = ("cycle", "raw_cut", "power_up", "index_entry", "descriptor", "battery", "kind", "name",
             "selectivity", "projectivity")  # fmt: skip
_SHAPE = "penstock power takes a file with broadcast:, sources:, devices: and queries:."

_T = TypeVar("_T")


def read_power(path: Path) -> PowerProblem:
    """The problem in the file at ``path``, YAML or JSON."""
    return parse_power(text_of(path), str(path))


def parse_power(text: str, origin: str) -> PowerProblem:
    """The problem that ``text`` describes; ``origin`` is what errors call the text.

    >>> problem = parse_power('''
    ... broadcast: {organisation: sorted, bandwidth: 125000}
    ... sources: {s1: {rate: 750, tuple_bytes: 3000}}
    ... devices: {d1: {speed: 1.0e9, processing_power: 0.16, receiving_power: 1.0}}
    ... queries: {q1: {source: s1, devices: [d1], operators: [{cycles: 1.5e8, selectivity: 0.5}]}}
    ... ''', "one.yaml")
    >>> problem.queries[0].operators[0].selectivity, problem.broadcast.cycle_s
    (0.5, 1.0)
    """
    if not text.strip():
        raise InputError(f"{origin} is empty", hint=_SHAPE)
    return built_quickly(text, _problem_of_record) or _problem(YamlFile(origin, text).root())


def is_deployment(text: str, origin: str) -> bool:
    """Whether a text is a deployment with devices rather than a problem."""
    if not text.strip() or text.lstrip().startswith("{"):
        return False
    entries = YamlFile(origin, text).root().entries()
    return "streams" in entries and "devices" in entries


def _problem(root: Value) -> PowerProblem:
    entries = root.entries()
    if "streams" in entries:
        raise InputError(
            f"{root.what} is a deployment without devices",
            hint=f"Add devices: and broadcast:. {_SHAPE}",
        )
    top = root.section(_SECTIONS)
    channel = top["broadcast"].section(tuple(_BROADCAST), "the broadcast")
    with channel.whole.pointing():
        broadcast = Broadcast(**_fields(channel, _BROADCAST))
    sources = _each(top, "sources", _SOURCE, lambda name, given: ChainSource(name, **given))
    devices = _each(top, "devices", _DEVICE, lambda name, given: DeviceProfile(name, **given))
    written = _named(top["queries"], "query")
    queries = {name: _query(name, value) for name, value in written.items()}
    with top["queries"].pointing():
        return _check_problem(broadcast, sources, devices, queries, written)


def _check_problem(
    broadcast: Broadcast,
    sources: tuple[ChainSource, ...],
    devices: tuple[DeviceProfile, ...],
    queries: Mapping[str, ChainQuery],
    written: Mapping[str, Value],
) -> PowerProblem:
    """The problem; an error about one query points at it."""
    try:
        return PowerProblem(broadcast, sources, devices, tuple(queries.values()))
    except InputError as error:
        named = next((value for name, value in written.items() if f"query {name} " in error.what),
                     None)  # fmt: skip
        raise (error.at(named.place) if named is not None else error) from None


def _named(section: Value, kind: str) -> dict[str, Value]:
    """The values of a section by name; errors about one as a whole point at its name."""
    entries = section.entries()
    return {
        name: Value(value.file, value.node, f"{kind} {name}", key)
        for (name, value), (key, _) in zip(entries.items(), section.node.value, strict=True)
    }


def _each(
    top: Section, section: str, names: Mapping[str, str], build: Callable[[str, Any], _T]
) -> tuple[_T, ...]:
    found = []
    for name, value in _named(top[section], section[:-1]).items():
        with value.pointing():
            found.append(build(name, _fields(value.section(tuple(names)), names)))
    return tuple(found)


def _query(name: str, value: Value) -> ChainQuery:
    section = value.section(_QUERY)
    operators = tuple(
        _operator(at, operator, name) for at, operator in enumerate(_items(section["operators"]))
    )
    cut = section["cut"].whole() if "cut" in section else None
    with value.pointing():
        return ChainQuery(
            name, section["source"].text(), _texts(section["devices"]), operators, cut
        )


def _operator(at: int, value: Value, query: str) -> ChainOperator:
    plain = Value(value.file, value.node, f"operator {at + 1} of query {query}")
    operator = ChainOperator(**_fields(plain.section(tuple(_OPERATOR)), _OPERATOR))
    with value.pointing():
        check_operator(operator_label(at, operator, query), operator)
    return operator


def _items(value: Value) -> list[Value]:
    given = value.node.value
    if (
        value.is_scalar
        or not isinstance(given, list)
        or any(isinstance(item, tuple) for item in given)
    ):
        raise value.unfit("a list")
    return [Value(value.file, node, value.what) for node in given]


def _texts(value: Value) -> tuple[str, ...]:
    if value.is_scalar:
        return (value.text(),)
    return tuple(item.text("a list of names") for item in _items(value))


def _fields(section: Section, names: Mapping[str, str]) -> dict[str, Any]:
    """The values of a section by the names of the fields they are for."""
    found: dict[str, Any] = {}
    for key, field in names.items():
        if key in _OPTIONAL and key not in section:
            continue
        value = section[key]
        if key in _TEXTS:
            found[field] = value.text()
        else:
            found[field] = value.flag() if key in _FLAGS else value.number()
    return found


def _problem_of_record(record: Record) -> PowerProblem:
    """The problem in what JSON gives; whatever is wrong with it is found by the slow way."""
    if record.keys() != set(_SECTIONS):
        raise OddJson
    return PowerProblem(
        Broadcast(**_values(record["broadcast"], _BROADCAST)),
        tuple(
            ChainSource(name, **_values(given, _SOURCE))
            for name, given in _pairs(record, "sources")
        ),
        tuple(
            DeviceProfile(name, **_values(given, _DEVICE))
            for name, given in _pairs(record, "devices")
        ),
        tuple(_query_of_record(name, given) for name, given in _pairs(record, "queries")),
    )


def _pairs(record: Record, section: str) -> list[tuple[str, Any]]:
    if not isinstance(record[section], dict):
        raise OddJson
    return list(record[section].items())


def _query_of_record(name: str, record: object) -> ChainQuery:
    wanted = {"source", "devices", "operators"}
    if not isinstance(record, dict) or not wanted <= record.keys() <= set(_QUERY):
        raise OddJson
    cut, operators = record.get("cut"), record["operators"]
    if not isinstance(record["source"], str) or not isinstance(operators, list):
        raise OddJson
    if cut is not None and type(cut) is not int:
        raise OddJson
    return ChainQuery(
        name, record["source"], names_in(record["devices"]),
        tuple(ChainOperator(**_values(operator, _OPERATOR)) for operator in operators), cut,
    )  # fmt: skip


def _values(record: object, names: Mapping[str, str]) -> dict[str, Any]:
    found = field_values(record, names, _TEXTS, _FLAGS)
    if any(key not in _OPTIONAL and field not in found for key, field in names.items()):
        raise OddJson
    return found
