"""What the REST API says about a system, put together from its catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from penstock import __version__
from penstock.control.catalog import Catalog
from penstock.control.decisions import RESTARTS_AT_MOST
from penstock.control.records import NodeRecord, UnitRecord
from penstock.control.system import System
from penstock.load.apportion import OperatorShare, operator_shares
from penstock.load.costs import measured_costs

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


def fragments_answer(catalog: Catalog) -> list[Answer]:
    """Every fragment and intake: where it is, how it does, what was last measured."""
    # Of its present node only: one that is gone has left old numbers behind.
    latest = {one.name: _latest(catalog, one.name) for one in catalog.nodes()}
    measured = {
        node: {**sample.get("intakes", {}), **sample.get("fragments", {})}
        for node, sample in latest.items()
    }
    return [
        {
            "name": unit.name,
            "kind": unit.kind,
            "node": unit.node,
            "state": _state(unit),
            "epoch": unit.epoch,
            "error": unit.error,
            "restarts": unit.restarts,
            "restarts_at_most": RESTARTS_AT_MOST,
            "measured": unit.measured or measured.get(unit.node or "", {}).get(unit.name, {}),
        }
        for unit in catalog.units()
    ]


def operators_answer(catalog: Catalog, system: System) -> list[Answer]:
    """Every operator of fragments that run: its rows, and what it costs by estimate."""
    found = []
    for one in fragments_answer(catalog):
        unit, measured = system.units.get(one["name"]), one["measured"]
        if unit is None or unit.fragment is None or measured.get("selectivity") is None:
            continue
        rows_in = measured["rows_in"]
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


def _state(unit: UnitRecord) -> str:
    """What its present owner says."""
    if unit.is_unread:
        return "unread"
    return unit.state if unit.reported_epoch == unit.epoch else "starting"


def queries_answer(catalog: Catalog, system: System) -> list[Answer]:
    """Every submission with its queries and units."""
    units = {unit.name: unit for unit in catalog.units()}
    found = []
    for submission in catalog.submissions():
        if submission.id not in system.deployments:
            continue  # It has come since.
        mine = [one for one in system.units.values() if one.submission == submission.id]
        states = {_state(units[one.name]) for one in mine if one.name in units}
        network = system.deployments[submission.id].network
        found.append(
            {
                "name": submission.name,
                "queries": [query.name for query in network.queries],
                "fragments": [one.name for one in mine],
                "nodes": sorted({units[one.name].node or "" for one in mine if one.name in units}),
                "state": _summary(states),
            }
        )
    return found


def _summary(states: set[str]) -> str:
    for state in ("failed", "held back", "waiting", "starting", "running", "finished"):
        if state in states:
            return "starting" if state == "waiting" else state
    return "unread"


def system_answer(catalog: Catalog, system: System) -> Answer:
    """All of it."""
    return {
        "version": __version__,
        "nodes": nodes_answer(catalog),
        "queries": queries_answer(catalog, system),
        "fragments": fragments_answer(catalog),
        "moves": [asdict(move) for move in catalog.moves(last=10)],
    }


def metrics_text(catalog: Catalog, system: System) -> str:
    """The newest measurements in the text form Prometheus reads.

    Names end in their unit; nothing but numbers that were measured is there.
    """
    lines: list[str] = []
    for node in nodes_answer(catalog):
        label = f'{{node="{node["name"]}"}}'
        lines.append(f"penstock_node_up{label} {int(node['state'] == 'up')}")
        lines.append(f"penstock_node_utilisation_ratio{label} {node['utilisation']}")
        lines.append(f"penstock_node_memory_bytes{label} {node['memory_bytes']}")
    for unit in fragments_answer(catalog):
        label = f'{{fragment="{unit["name"]}",node="{unit["node"] or ""}"}}'
        lines.append(f"penstock_fragment_epoch{label} {unit['epoch']}")
        for key, value in sorted(unit["measured"].items()):
            if isinstance(value, int | float) and not isinstance(value, bool):
                lines.append(f"penstock_fragment_{key}{label} {value}")
    for one in operators_answer(catalog, system):
        label = f'{{operator="{one["operator"]}",fragment="{one["fragment"]}"}}'
        for key, value in sorted(one.items()):
            if isinstance(value, int | float):
                lines.append(f"penstock_operator_{key}{label} {value}")
    return "\n".join(sorted(lines)) + "\n"
