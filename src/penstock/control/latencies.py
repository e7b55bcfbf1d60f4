"""Which fragments are slower than they were asked to be, and why: decisions, pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.control.answer_models import FragmentAnswer, NodeAnswer
from penstock.control.records import UNREADABLE
from penstock.model.measurements import FragmentStatus

_FULL = 0.85
"""A node that uses this share of its cores has none left for a batch that waits."""


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
    fragments: Collection[FragmentAnswer],
    nodes: Collection[NodeAnswer],
    wanted: Mapping[str, Wanted],
) -> dict[str, Miss]:
    """The fragments that miss their limits, by name; ``fragments`` and ``nodes`` as the API tells.

    Linear in fragments and the streams they read.
    """
    late = {
        fragment.name: delay_s(fragment.status)
        for fragment in fragments
        if _is_late(fragment, wanted)
    }
    used = {node.name: node.utilisation for node in nodes}
    beside: dict[str | None, int] = {}
    for answer in fragments:
        is_working = answer.kind == "fragment" and answer.state in ("running", "held back")
        beside[answer.node] = beside.get(answer.node, 0) + is_working
    found = {}
    for answer in fragments:
        limit_s = wanted.get(answer.name, Wanted(None)).limit_s
        taken_s = late.get(answer.name)
        if limit_s is not None and taken_s is not None:
            inputs = [name for name in wanted[answer.name].inputs if name in late]
            why = _why(answer, used.get(answer.node or "", 0.0), beside[answer.node], inputs)
            found[answer.name] = Miss(taken_s, limit_s, why)
    return found


def delay_s(status: FragmentStatus | None) -> float | None:
    """How long results take: those of the newest batch, or of the rows that wait just now."""
    if status is None:
        return None
    told = (status.latest_latency_s, status.waiting_s)
    return max((delay_s for delay_s in told if delay_s is not None), default=None)


def _is_late(fragment: FragmentAnswer, wanted: Mapping[str, Wanted]) -> bool:
    limit_s, taken_s = wanted.get(fragment.name, Wanted(None)).limit_s, delay_s(fragment.status)
    is_over = fragment.state in ("finished", "failed", "unread", UNREADABLE)
    return not is_over and limit_s is not None and taken_s is not None and taken_s > limit_s


def _why(fragment: FragmentAnswer, used: float, beside: int, late_inputs: Collection[str]) -> str:
    if fragment.state == "held back":
        return "it is held back by what reads it"
    if fragment.state != "running":
        return f"it is {fragment.state}"
    if late_inputs:
        return f"its input is late: {', '.join(sorted(late_inputs))}"
    if used >= _FULL and beside > 1:
        return (
            f"node {fragment.node} is overloaded, {used:.0%} of its cores in use; it waits for its "
            f"turn among {beside} fragments"
        )
    if used >= _FULL:
        return f"node {fragment.node} is overloaded, {used:.0%} of its cores in use"
    if fragment.status is None or not fragment.status.batches:
        return "its first batch is not out yet"
    return f"its batches take {_seconds(fragment.status.batch_ms / 1_000)}"


def _seconds(seconds: float) -> str:
    """A time with as many digits as say something.

    >>> [_seconds(seconds) for seconds in (0.001, 0.25, 2.0, 2.25, 31.4)]
    ['1 ms', '250 ms', '2 s', '2.2 s', '31 s']
    """
    if seconds < 1:
        return f"{1_000 * seconds:.3g} ms"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s".replace(".0 s", " s")
