"""Which fragments are slower than they were asked to be, and why: decisions, pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.control.records import UNREADABLE

_FULL = 0.85
"""A node that uses this share of its cores has none left for a batch that waits."""

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What a fragment is asked for: the latency of its results, and the streams it reads."""

    limit_s: float | None
    inputs: Collection[str] = ()


@dataclass(frozen=True)
class Miss:
    """A fragment whose results take longer than they may."""

    delay_s: float
    limit_s: float
    why: str

    @property
    def text(self) -> str:
        """The same in a sentence.

        >>> Miss(142.0, 5.0, "node a is overloaded").text
        'results take 142 s instead of 5 s: node a is overloaded'
        """
        return (
            f"results take {_seconds(self.delay_s)} instead of {_seconds(self.limit_s)}: {self.why}"
        )


def misses(
    fragments: Collection[Answer], nodes: Collection[Answer], wanted: Mapping[str, Wanted]
) -> dict[str, Miss]:
    """The fragments that miss their limits, by name; ``fragments`` and ``nodes`` as the API tells.

    Linear in fragments and the streams they read.
    """
    late = {
        fragment["name"]: delay_s(fragment["measured"])
        for fragment in fragments
        if _is_late(fragment, wanted)
    }
    known = {node["name"]: node for node in nodes}
    beside: dict[str, int] = {}
    for one in fragments:
        is_working = one["kind"] == "fragment" and one["state"] in ("running", "held back")
        beside[one["node"]] = beside.get(one["node"], 0) + is_working
    found = {}
    for one in fragments:
        limit_s = wanted.get(one["name"], Wanted(None)).limit_s
        taken_s = late.get(one["name"])
        if limit_s is not None and taken_s is not None:
            inputs = [name for name in wanted[one["name"]].inputs if name in late]
            why = _why(one, known.get(one["node"], {}), beside[one["node"]], inputs)
            found[one["name"]] = Miss(taken_s, limit_s, why)
    return found


def delay_s(measured: Answer) -> float | None:
    """How long results take: those of the newest batch, or of the rows that wait just now."""
    told = (measured.get("latest_latency_s"), measured.get("waiting_s"))
    known = [delay_s for delay_s in told if delay_s is not None]
    return max(known, default=None)


def _is_late(one: Answer, wanted: Mapping[str, Wanted]) -> bool:
    limit_s, taken_s = wanted.get(one["name"], Wanted(None)).limit_s, delay_s(one["measured"])
    is_over = one["state"] in ("finished", "failed", "unread", UNREADABLE)
    return not is_over and limit_s is not None and taken_s is not None and taken_s > limit_s


def _why(one: Answer, node: Answer, beside: int, late_inputs: Collection[str]) -> str:
    if one["state"] == "held back":
        return "it is held back by what reads it"
    if one["state"] != "running":
        return f"it is {one['state']}"
    if late_inputs:
        return f"its input is late: {', '.join(sorted(late_inputs))}"
    used = node.get("utilisation", 0.0)
    if used >= _FULL and beside > 1:
        return (
            f"node {one['node']} is overloaded, {used:.0%} of its cores in use; it waits for its "
            f"turn among {beside} fragments"
        )
    if used >= _FULL:
        return f"node {one['node']} is overloaded, {used:.0%} of its cores in use"
    if not one["measured"].get("batches", 0):
        return "its first batch is not out yet"
    return f"its batches take {_seconds(one['measured'].get('batch_ms', 0.0) / 1_000)}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s".replace(".0 s", " s")
