"""How fragments stand: against their limits, against the clock, and beside all others; pure."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.control.answer_models import FragmentAnswer
from penstock.control.latencies import delay_s


def with_standing(fragments: Sequence[FragmentAnswer], now_s: float) -> list[FragmentAnswer]:
    """The fragments with what only shows in comparison; what is not measured stays unknown."""
    statuses = (fragment.status for fragment in fragments)
    total_ms = sum(status.cpu_ms for status in statuses if status is not None)
    return [_standing(fragment, total_ms, now_s) for fragment in fragments]


def _standing(fragment: FragmentAnswer, total_ms: float, now_s: float) -> FragmentAnswer:
    status = fragment.status
    if status is None:
        return fragment
    delayed_s, gap_s = delay_s(status), None
    if status.watermark_ms is not None and not status.is_finished:
        gap_s = now_s - status.watermark_ms / 1_000
    told = {
        "limit_share": delayed_s / fragment.limit_s
        if fragment.limit_s and delayed_s is not None
        else None,
        "watermark_gap_s": gap_s,
        "cpu_share": status.cpu_ms / total_ms if total_ms else None,
    }
    return fragment.model_copy(update=told)
