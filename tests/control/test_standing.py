"""How fragments stand: against their limits, against the clock, and beside all others."""

from __future__ import annotations

import pytest

from control.test_latencies import fragment
from penstock.control.standing import with_standing

pytestmark = pytest.mark.core


def test_against_limit_clock_and_others() -> None:
    slow = fragment("slow", latest_latency_s=6.0, watermark_ms=90_000, cpu_ms=30.0)
    quick = fragment("quick", cpu_ms=10.0)
    first, second = with_standing([slow.model_copy(update={"limit_s": 5.0}), quick], 100.0)
    assert (first.limit_share, first.watermark_gap_s, first.cpu_share) == (1.2, 10.0, 0.75)
    assert (second.limit_share, second.watermark_gap_s, second.cpu_share) == (None, None, 0.25)


def test_what_has_ended_or_is_not_measured_is_not_compared() -> None:
    ended = fragment("ended", watermark_ms=90_000, is_finished=True)
    (only,) = with_standing([ended], 100.0)
    assert (only.watermark_gap_s, only.cpu_share) == (None, None)
