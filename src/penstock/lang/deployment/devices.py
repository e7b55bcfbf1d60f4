"""The devices of a deployment file: reading and printing ``broadcast:`` and ``devices:``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ruamel.yaml.nodes import SequenceNode

from penstock.errors import InputError, listed, suggestion
from penstock.lang.deployment.yamlfile import Section, Value
from penstock.model.devices import (
    Broadcast,
    DeviceProfile,
    DeviceQuery,
    DeviceSection,
    GivenCost,
)
from penstock.model.network import Network
from penstock.model.operators import TableJoin

_BROADCAST = {
    "organisation": "organisation",
    "bandwidth": "bandwidth_per_s",
    "cycle": "cycle_s",
    "raw_cut": "raw_cut",
    "power_up": "power_up_j",
}
_SETTINGS = {"open": "is_open", "listeners": "listeners", "recut": "recut"}
_DEVICE = {
    "speed": "speed_per_s",
    "processing_power": "processing_w",
    "receiving_power": "receiving_w",
    "battery": "battery_j",
}
_QUERY = {"cut": "cut", "rate": "rate_per_s", "tuple_bytes": "tuple_bytes"}
_COST = ("cycles", "selectivity", "projectivity")
_FLAGS, _WHOLE = ("raw_cut", "open", "recut"), ("listeners", "cut")


def read_devices(top: Section, network: Network) -> DeviceSection | None:
    """What a file says of devices, checked against its queries; None if it says nothing."""
    if "devices" not in top and "broadcast" not in top:
        _check_tables(top, network, frozenset())
        return None
    channel = top["broadcast"].section((*_BROADCAST, *_SETTINGS), "the broadcast")
    written = {
        name: Value(value.file, value.node, f"device {name}", top["devices"].key_node(name))
        for name, value in top["devices"].entries().items()
    }
    heard = {name: _queries_of(value, network) for name, value in written.items()}
    devices = tuple(_device(name, value) for name, value in written.items())
    queries = tuple(
        _query(query.name, top, [name for name in written if query.name in heard[name]], network)
        for query in network.queries
        if any(query.name in names for names in heard.values())
    )
    _check_tables(top, network, frozenset(query.name for query in queries))
    with channel.whole.pointing():
        broadcast = Broadcast(**_fields(channel, _BROADCAST))
        return DeviceSection(broadcast, devices, queries, **_fields(channel, _SETTINGS))


def _fields(section: Section, names: Mapping[str, str]) -> dict[str, Any]:
    """The values that are written, by the names of the fields they are for."""
    found: dict[str, Any] = {}
    for key, field in names.items():
        if key not in section:
            if key in ("organisation", "bandwidth"):
                section[key]  # Raises: there is none.
            continue
        value = section[key]
        if key == "organisation":
            found[field] = value.text()
        elif key in _FLAGS:
            found[field] = value.flag()
        else:
            found[field] = value.whole() if key in _WHOLE else value.number()
    return found


def _device(name: str, value: Value) -> DeviceProfile:
    section = value.section((*_DEVICE, "queries"))
    for key in ("speed", "processing_power", "receiving_power"):
        section[key]  # Raises where it is missing.
    with value.pointing():
        return DeviceProfile(name, **_fields(section, _DEVICE))


def _queries_of(value: Value, network: Network) -> list[str]:
    section = value.section((*_DEVICE, "queries"))
    given = section["queries"]
    nodes = given.node.value if isinstance(given.node, SequenceNode) else [given.node]
    known = [query.name for query in network.queries]
    names = []
    for node in nodes:
        entry = Value(given.file, node, given.what)
        name = entry.text("a list of queries")
        if name not in known:
            raise InputError(
                f"{value.what} hears {name}; the queries are {listed(known)}",
                hint=suggestion(name, known),
                place=entry.place,
            )
        names.append(name)
    return names


def _query(name: str, top: Section, devices: list[str], network: Network) -> DeviceQuery:
    whole = top["queries"].entries()[name]
    entries = {} if whole.is_scalar else whole.entries()
    if "to" in entries:
        raise InputError(
            f"query {name} is for devices, and has a destination as well",
            hint="Remove to:, or let another query put the same rows there.",
            place=entries["to"].place,
        )
    if "device" not in entries:
        return DeviceQuery(name, tuple(devices))
    section = entries["device"].section((*_QUERY, "operators"), f"device of query {name}")
    costs = _costs(section, name, network) if "operators" in section else {}
    with section.whole.pointing():
        return DeviceQuery(name, tuple(devices), costs=costs, **_fields(section, _QUERY))


def _costs(section: Section, query: str, network: Network) -> dict[str, GivenCost]:
    """What is given of operators; one is called by its name, or by what follows the query's."""
    behind = network.upstream([network.query(query).stream])
    known = [
        operator.name for operator in network.operators if not behind.isdisjoint(operator.outputs)
    ]
    found = {}
    for written, value in section["operators"].entries().items():
        name = written if written in known else f"{query}_{written}"
        if name not in known:
            raise InputError(
                f"query {query} has no operator {written}; it has {listed(known)}",
                hint=suggestion(written, known),
                place=value.place,
            )
        given = value.section(_COST, f"operator {written} of query {query}")
        with given.whole.pointing():
            found[name] = GivenCost(**{key: given[key].number() for key in _COST if key in given})
    return found


def _check_tables(top: Section, network: Network, heard: frozenset[str]) -> None:
    """Raises where a query that no device hears needs a table that only devices have."""
    for query in network.queries:
        behind = network.upstream([query.stream])
        for operator in network.operators:
            if not isinstance(operator, TableJoin) or query.name in heard:
                continue
            if operator.table.on_devices and not behind.isdisjoint(operator.outputs):
                raise InputError(
                    f"query {query.name} joins table {operator.table.name}, which only devices "
                    "have, and no device hears it",
                    hint="Name it under queries: of a device, or give the table a file.",
                    place=top["queries"].entries()[query.name].place,
                )


def device_sections(devices: DeviceSection | None) -> dict[str, object]:
    """The sections ``broadcast`` and ``devices`` of a file."""
    if devices is None:
        return {}
    channel = {key: getattr(devices.broadcast, field) for key, field in _BROADCAST.items()}
    settings = {key: getattr(devices, field) for key, field in _SETTINGS.items()}
    return {
        "broadcast": channel | settings,
        "devices": {
            device.name: _written(device, _DEVICE)
            | {"queries": [query.name for query in devices.queries if device.name in query.devices]}
            for device in devices.devices
        },
    }


def with_devices(
    settings: dict[str, object], devices: DeviceSection | None, query: str
) -> dict[str, object]:
    """The settings of a query, with what is said of it for devices; its rows go to them alone."""
    found = devices.query(query) if devices is not None else None
    if found is None:
        return settings
    own = {key: value for key, value in settings.items() if key != "to"}
    return own | _device_settings(found)


def _device_settings(found: DeviceQuery) -> dict[str, object]:
    settings = _written(found, _QUERY)
    if found.costs:
        settings["operators"] = {
            name: _written(cost, {key: key for key in _COST}) for name, cost in found.costs.items()
        }
    return {"device": settings} if settings else {}


def _written(record: object, names: Mapping[str, str]) -> dict[str, object]:
    values = {key: getattr(record, field) for key, field in names.items()}
    return {key: value for key, value in values.items() if value is not None}
