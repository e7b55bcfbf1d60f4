"""What was measured lately, as series: of every node and every fragment."""

from __future__ import annotations

from pydantic import Field

from penstock.control.api_model import ApiModel
from penstock.control.catalog import Catalog


class NodeSeries(ApiModel):
    """A node's share of its cores and its memory, at these times."""

    at_s: list[float] = Field(default_factory=list)
    utilisation: list[float] = Field(default_factory=list)
    memory_bytes: list[int] = Field(default_factory=list)


class FragmentSeries(ApiModel):
    """A fragment's rates and times; ``busy`` is the share of time it worked since the one before.

    Null where that is not known.
    """

    at_s: list[float] = Field(default_factory=list)
    rows_in_per_s: list[float | None] = Field(default_factory=list)
    latency_s: list[float | None] = Field(default_factory=list)
    busy: list[float | None] = Field(default_factory=list)


class History(ApiModel):
    """Series by name of node and of fragment, oldest first."""

    nodes: dict[str, NodeSeries]
    fragments: dict[str, FragmentSeries]


def history(catalog: Catalog, last: int) -> History:
    """The latest measurements of each node; linear in them."""
    nodes: dict[str, NodeSeries] = {}
    fragments: dict[str, FragmentSeries] = {}
    busy_ms: dict[str, tuple[float, float]] = {}
    known = [
        (node.name, sample)
        for node in catalog.nodes()
        for sample in catalog.samples(node.name, last)
    ]
    # By time: a fragment that was moved has been measured on several nodes.
    for name, sample in sorted(known, key=lambda pair: pair[1].at_s):
        series = nodes.setdefault(name, NodeSeries())
        series.at_s.append(sample.at_s)
        series.utilisation.append(sample.utilisation)
        series.memory_bytes.append(sample.memory_bytes)
        for fragment, measured in sample.fragments.items():
            now = (sample.at_s, float(measured.busy_ms))
            mine = fragments.setdefault(fragment, FragmentSeries())
            mine.at_s.append(sample.at_s)
            mine.rows_in_per_s.append(measured.rows_in_per_s)
            mine.latency_s.append(measured.latest_latency_s)
            mine.busy.append(_share(busy_ms.get(fragment), now))
            busy_ms[fragment] = now
    return History(nodes=nodes, fragments=fragments)


def _share(before: tuple[float, float] | None, now: tuple[float, float]) -> float | None:
    """The share of time between two samples in which it worked; None if it was started anew."""
    if before is None or now[0] <= before[0] or now[1] < before[1]:
        return None
    return round(min(1.0, (now[1] - before[1]) / 1_000 / (now[0] - before[0])), 4)
