"""What was measured lately, as series: of every node and every fragment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from penstock.control.catalog import Catalog
from penstock.control.view import plain

Sample = Mapping[str, Any]


class NodeSeries(BaseModel):
    """A node's share of its cores and its memory, at these times."""

    at_s: list[float] = []
    utilisation: list[float] = []
    memory_bytes: list[int] = []


class FragmentSeries(BaseModel):
    """A fragment's rates and times; ``busy`` is the share of time it worked since the one before.

    Null where that is not known.
    """

    at_s: list[float] = []
    rows_in_per_s: list[float | None] = []
    latency_s: list[float | None] = []
    busy: list[float | None] = []


class History(BaseModel):
    """Series by name of node and of fragment, oldest first."""

    nodes: dict[str, NodeSeries]
    fragments: dict[str, FragmentSeries]


def history(catalog: Catalog, last: int) -> History:
    """The latest measurements of each node; linear in them."""
    nodes: dict[str, NodeSeries] = {}
    fragments: dict[str, FragmentSeries] = {}
    busy_ms: dict[str, tuple[float, float]] = {}
    known = [
        (node.name, sample) for node in catalog.nodes() for sample in _of(catalog, node.name, last)
    ]
    # By time: a fragment that was moved has been measured on several nodes.
    for name, sample in sorted(known, key=lambda one: one[1]["at_s"]):
        series = nodes.setdefault(name, NodeSeries())
        series.at_s.append(sample["at_s"])
        series.utilisation.append(sample.get("utilisation", 0.0))
        series.memory_bytes.append(sample.get("memory_bytes", 0))
        for fragment, measured in sample.get("fragments", {}).items():
            _add(fragments.setdefault(fragment, FragmentSeries()), sample["at_s"], measured)
            before = busy_ms.get(fragment)
            now = (sample["at_s"], measured.get("busy_ms", 0.0))
            fragments[fragment].busy.append(_share(before, now))
            busy_ms[fragment] = now
    return History(nodes=nodes, fragments=fragments)


def _of(catalog: Catalog, node: str, last: int) -> list[Sample]:
    found: list[Sample] = plain(catalog.samples(node, last))
    return found


def _add(series: FragmentSeries, at_s: float, measured: Sample) -> None:
    series.at_s.append(at_s)
    series.rows_in_per_s.append(measured.get("rows_in_per_s"))
    series.latency_s.append(measured.get("latest_latency_s"))


def _share(before: tuple[float, float] | None, now: tuple[float, float]) -> float | None:
    """The share of time between two samples in which it worked; None if it was started anew."""
    if before is None or now[0] <= before[0] or now[1] < before[1]:
        return None
    return round(min(1.0, (now[1] - before[1]) / 1_000 / (now[0] - before[0])), 4)
