"""What the windows of joins take on disk, by rates, bounds and columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control.spreading import spread_fragment
from penstock.kernels.join_room import StreamFlow, WindowRoom, light_joins, window_room
from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse

FLOWS = {"calls": StreamFlow(100.0), "taps": StreamFlow(10.0)}
# Calls have a time, a number and a string, and all are kept; of taps two of three.
CALL_BYTES, TAP_BYTES = (8 + 8 + 24) + 1.5 * (20 + 40), (8 + 8 + 24) + 1.5 * (20 + 32)


def room(bound: str, join: str = "", kind: str = "JOIN", flows: object = FLOWS) -> WindowRoom:
    sides = "".join(
        f"  {name}: {{source: {{directory: {name}, format: csv}}, schema: '{at} timestamp, k "
        f"string, {number} bigint', event_time: {at}, lateness: 1s}}\n"
        for name, at, number in (("calls", "ts", "n"), ("taps", "at", "m"))
    )
    text = (
        f"streams:\n{sides}queries:\n  pairs:\n    sql: SELECT l.ts, l.k, l.n FROM calls l {kind} "
        f"taps r ON l.k = r.k AND {bound}\n{join}"
    )
    network = parse_deployment(text, "d.yaml", Path()).network
    (fused,) = fuse(network)
    fragments = spread_fragment(network, fused, {})
    ((name, plan),) = light_joins((network, fragment) for fragment in fragments)
    assert name == "pairs"
    return window_room(name, plan, flows)  # type: ignore[arg-type]


BOTH = "r.at BETWEEN l.ts - INTERVAL 1 MINUTE AND l.ts + INTERVAL 1 HOUR"


def test_each_side_is_kept_as_long_as_the_other_may_need_it() -> None:
    calls, taps = room(BOTH).sides
    assert (calls.stream, calls.window_s, calls.rows) == ("calls", 3_600, 360_000)
    assert (taps.stream, taps.window_s, taps.rows) == ("taps", 60, 600)
    assert (calls.row_bytes, taps.row_bytes) == (CALL_BYTES, TAP_BYTES)
    assert room(BOTH).bytes == 360_000 * CALL_BYTES + 600 * TAP_BYTES


def test_rows_that_nobody_waits_for_are_not_kept() -> None:
    (calls,) = room("r.at BETWEEN l.ts + INTERVAL 1 SECOND AND l.ts + INTERVAL 5 SECONDS").sides
    assert (calls.stream, calls.window_s) == ("calls", 5)


def test_a_left_join_looks_through_the_whole_bound_once_more() -> None:
    _, taps = room(BOTH, kind="LEFT JOIN").sides
    assert taps.window_s == 3_660


def test_every_part_has_runs_of_its_own() -> None:
    calls, _ = room(BOTH, "    join: {spread: 3, groups: 6}\n").sides
    assert calls.row_bytes == 40 + 3 * 1.5 * 60


def test_what_was_seen_counts_more_than_what_types_say() -> None:
    (calls,) = room(BOTH, flows={"calls": StreamFlow(100.0, row_bytes=7.0)}).sides
    assert calls.row_bytes == 7 + 1.5 * 60


@pytest.mark.parametrize(("free", "held", "is_short"), [
    (100, 0.0, True), (10**9, 0.0, False), (100, 1e9, False), (10**7, 1e7, True),
])  # fmt: skip
def test_what_is_there_already_needs_no_room(free: int, held: float, is_short: bool) -> None:
    assert (room(BOTH).shortage(free, Path("/state"), held) is not None) == is_short


def test_joins_of_spark_have_no_runs() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        room(BOTH, "    join: native\n")
