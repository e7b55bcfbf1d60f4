"""What the REST API says about a system, put together from its catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from penstock import __version__
from penstock.control.catalog import Catalog
from penstock.control.decisions import RESTARTS_AT_MOST
from penstock.control.latencies import Wanted, misses
from penstock.control.notes import is_waiting_for_node, place_notes
from penstock.control.records import UNREADABLE, NodeRecord, UnitRecord
from penstock.control.system import System, Unit
from penstock.control.unreadable import unreadable_units
from penstock.load.apportion import OperatorShare, operator_shares
from penstock.load.costs import measured_costs
from penstock.model.durations import US_PER_S, moment_text
from penstock.model.measurements import rows_read_here
from penstock.place.rhythm import latency_limit_us

Answer = dict[str, Any]


def nodes_answer(catalog: Catalog) -> list[Answer]:
    """Every node with what it has, what it uses and what runs on it."""
    now_s, units = catalog.now_s(), catalog.units()
    return [_node(node, catalog, units, now_s) for node in catalog.nodes()]


def _node(
    node: NodeRecord, catalog: Catalog, units: tuple[UnitRecord, ...], now_s: float
) -> Answer:
    latest = _latest(catalog, node.name)
    alive = node.is_alive(now_s)
    return {
        "name": node.name,
        "state": "up" if alive else ("gone" if node.incarnation else "starting"),
        "cores": node.cores,
        "memory_limit_bytes": node.memory_bytes,
        "pid": node.pid,
        "version": node.version,
        "utilisation": latest.get("utilisation", 0.0) if alive else 0.0,
        "memory_bytes": latest.get("memory_bytes", 0) if alive else 0,
        "runs": [unit.name for unit in units if unit.node == node.name],
    }


def _latest(catalog: Catalog, node: str) -> Mapping[str, Any]:
    found = catalog.samples(node, 1)
    return found[-1] if found else {}


def fragments_answer(
    catalog: Catalog, system: System, set_aside: Sequence[Answer] = ()
) -> list[Answer]:
    """Every fragment and intake: where it is, how it does, what was last measured.

    ``limit_s`` is how long its results may take, ``late`` whether they take longer. ``set_aside``
    is what could not be used of streams.
    """
    wanted = {name: _wanted(unit) for name, unit in system.units.items()}
    unreadable = unreadable_units(system, set_aside)
    found = _fragments(catalog, system, wanted, unreadable)
    missed = misses(found, nodes_answer(catalog), wanted)
    for one in found:
        miss = missed.get(one["name"])
        one["late"] = miss is not None
        one["notes"] += [] if miss is None else [miss.text]
    return found


def _wanted(unit: Unit) -> Wanted:
    if unit.fragment is None:
        return Wanted(None)
    limit_us = latency_limit_us(unit.network, unit.fragment)
    return Wanted(None if limit_us is None else limit_us / US_PER_S, unit.reads)


def _fragments(
    catalog: Catalog,
    system: System,
    wanted: Mapping[str, Wanted],
    unreadable: Mapping[str, str],
) -> list[Answer]:
    nodes, now_s = catalog.nodes(), catalog.now_s()
    alive = {node.name for node in nodes if node.is_alive(now_s)}
    begins = {begin["fragment"]: begin for begin in begins_answer(system.units.values())}
    # Of its present node only: one that is gone has left old numbers behind.
    latest = {node.name: _latest(catalog, node.name) for node in nodes}
    measured = {
        node: {**sample.get("intakes", {}), **sample.get("fragments", {})}
        for node, sample in latest.items()
    }
    return [
        {
            "name": unit.name,
            "kind": unit.kind,
            "node": unit.node,
            "belongs": unit.belongs or unit.node,
            "state": _state(unit, alive, unreadable),
            "notes": place_notes(unit, alive),
            "limit_s": wanted[unit.name].limit_s if unit.name in wanted else None,
            "epoch": unit.epoch,
            "error": unit.error or unreadable.get(unit.name, ""),
            "restarts": unit.restarts,
            "restarts_at_most": RESTARTS_AT_MOST,
            "since": begins.get(unit.name, {}).get("since"),
            "untimed": begins.get(unit.name, {}).get("untimed", False),
            "measured": unit.measured or measured.get(unit.node or "", {}).get(unit.name, {}),
        }
        for unit in catalog.units()
    ]


def operators_answer(catalog: Catalog, system: System) -> list[Answer]:
    """Every operator of fragments that run: its rows, and what it costs by estimate."""
    found = []
    for one in fragments_answer(catalog, system):
        unit, measured = system.units.get(one["name"]), one["measured"]
        if unit is None or unit.fragment is None or measured.get("selectivity") is None:
            continue
        rows_in = rows_read_here(measured)
        rows_out = rows_in * measured["selectivity"]
        shares = operator_shares(
            unit.fragment, rows_in, rows_out, measured.get("cpu_ms", 0.0), measured_costs()
        )
        share_in_s = measured.get("rows_in_per_s", 0.0) / rows_in
        found += [_operator(one, share, share_in_s) for share in shares]
    return found


def _operator(fragment: Answer, share: OperatorShare, per_s: float) -> Answer:
    known = {"rows_in": share.rows_in, "rows_out": share.rows_out}
    rates = {f"{name}_per_s": None if n is None else n * per_s for name, n in known.items()}
    numbers = {**known, **rates, "selectivity": share.selectivity, "cost_us": share.cost_us}
    rounded = {name: n if n is None else round(n, 3) for name, n in numbers.items()}
    return {
        "operator": share.name,
        "kind": share.kind,
        "fragment": fragment["name"],
        "node": fragment["node"],
        **rounded,
    }


def _state(unit: UnitRecord, alive: Collection[str], unreadable: Collection[str]) -> str:
    """What its present owner says, as long as it can."""
    if unit.is_unread:
        return "unread"
    if is_waiting_for_node(unit, alive):
        return "waiting"
    if unit.reported_epoch != unit.epoch:
        return "starting"
    return UNREADABLE if unit.state == "finished" and unit.name in unreadable else unit.state


def queries_answer(
    catalog: Catalog, system: System, set_aside: Sequence[Answer] = ()
) -> list[Answer]:
    """Every submission with its queries and units."""
    unreadable = unreadable_units(system, set_aside)
    units = {unit.name: unit for unit in catalog.units()}
    now_s = catalog.now_s()
    alive = {node.name for node in catalog.nodes() if node.is_alive(now_s)}
    found = []
    for submission in catalog.submissions():
        if submission.id not in system.deployments:
            continue  # It has come since.
        mine = [unit for unit in system.units.values() if unit.submission == submission.id]
        states = {
            _state(units[unit.name], alive, unreadable) for unit in mine if unit.name in units
        }
        network = system.deployments[submission.id].network
        found.append(
            {
                "name": submission.name,
                "queries": [query.name for query in network.queries],
                "fragments": [unit.name for unit in mine],
                "begins": begins_answer(mine),
                "nodes": sorted(
                    {units[unit.name].node or "" for unit in mine if unit.name in units}
                ),
                "state": _summary(states),
            }
        )
    return found


def begins_answer(units: Iterable[Unit]) -> list[Answer]:
    """Since when the queries of each fragment count.

    ``since`` is the event time after which they do; null where they count from the first row on,
    or, if ``untimed``, from the first batch after they were submitted.
    """
    return [
        {
            "fragment": unit.name,
            "queries": list(unit.fragment.queries),
            "from": unit.fragment.beginning.start,
            "since": _moment(unit.fragment.beginning.since_us),
            "untimed": unit.fragment.beginning.is_untimed,
        }
        for unit in units
        if unit.fragment is not None
    ]


def _moment(us: int | None) -> str | None:
    return None if us is None else moment_text(us)


def _summary(states: set[str]) -> str:
    order = ("failed", UNREADABLE, "held back", "waiting", "starting", "running", "finished")
    for state in order:
        if state in states:
            return "starting" if state == "waiting" else state
    return "unread"


def system_answer(catalog: Catalog, system: System, set_aside: Sequence[Answer] = ()) -> Answer:
    """All of it; ``set_aside`` is what could not be used of streams."""
    return {
        "version": __version__,
        "nodes": nodes_answer(catalog),
        "queries": queries_answer(catalog, system, set_aside),
        "fragments": fragments_answer(catalog, system, set_aside),
        "moves": [asdict(move) for move in catalog.moves(last=10)],
        "set_aside": list(set_aside),
    }


def metrics_text(catalog: Catalog, system: System, set_aside: Sequence[Answer] = ()) -> str:
    """The newest measurements in the text form Prometheus reads.

    Names end in their unit; nothing but numbers that were measured is there.
    """
    lines: list[str] = []
    for node in nodes_answer(catalog):
        label = f'{{node="{node["name"]}"}}'
        lines.append(f"penstock_node_up{label} {int(node['state'] == 'up')}")
        lines.append(f"penstock_node_utilisation_ratio{label} {node['utilisation']}")
        lines.append(f"penstock_node_memory_bytes{label} {node['memory_bytes']}")
    for unit in fragments_answer(catalog, system):
        label = f'{{fragment="{unit["name"]}",node="{unit["node"] or ""}"}}'
        lines.append(f"penstock_fragment_epoch{label} {unit['epoch']}")
        if unit["limit_s"] is not None:
            lines.append(f"penstock_fragment_limit_s{label} {unit['limit_s']}")
            lines.append(f"penstock_fragment_late{label} {int(unit['late'])}")
        for key, value in sorted(unit["measured"].items()):
            if isinstance(value, int | float) and not isinstance(value, bool):
                lines.append(f"penstock_fragment_{key}{label} {value}")
    for one in operators_answer(catalog, system):
        label = f'{{operator="{one["operator"]}",fragment="{one["fragment"]}"}}'
        for key, value in sorted(one.items()):
            if isinstance(value, int | float):
                lines.append(f"penstock_operator_{key}{label} {value}")
    for one in set_aside:
        for kind, rows in one["rows"].items():
            label = f'{{stream="{one["stream"]}",kind="{kind}"}}'
            lines.append(f"penstock_stream_set_aside_rows{label} {rows}")
        label = f'{{stream="{one["stream"]}"}}'
        lines.append(f"penstock_stream_nothing_read{label} {int(one['nothing_read'])}")
    return "\n".join(sorted(lines)) + "\n"
