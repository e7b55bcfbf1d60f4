"""Since when a query counts that is submitted later: decided by how far streams have come alone."""

from __future__ import annotations

import pytest

from control.test_system import made
from penstock.channels.manifest import Manifest
from penstock.control.beginning import Head, decide_beginnings
from penstock.errors import InputError
from penstock.model.beginnings import Beginning, Begun, Reread, StartKind

STREAMS = """
streams:
  calls: {source: {generate: meters, days: 1}, lateness: 2min}
  bills: {source: {generate: meters, days: 2}, lateness: 1min}
  notes: {source: {replay: notes.csv}, schema: "text string"}
queries:
  high: SELECT ts, home, kwh FROM calls WHERE kwh > 3
"""
BOTH = "SELECT ts, home FROM high UNION ALL SELECT ts, home FROM bills WHERE kwh > 1"
CALLS_US, HIGH_US, BILLS_US = 70, 60, 90


def head(next: int, us: int | None, ended: bool = False) -> Head:
    latest = {} if us is None else {"ts": us}
    state = {"at": 12, "high_water_us": us}
    return Head.behind(Manifest(next - 1, 1, 1, ended=ended, writer_state=state, latest=latest))


HEADS = {
    "calls": head(4, CALLS_US),
    "high": head(3, HIGH_US),
    "bills": head(6, BILLS_US),
    "notes": head(2, None),
}


def begun(start: StartKind, text: str = BOTH, heads: dict[str, Head] = HEADS) -> Begun:
    return decide_beginnings(made(STREAMS, text), 2, start, lambda name: heads[name])


def the(begun: Begun) -> Beginning:
    (beginning,) = begun.fragments.values()
    return beginning


def test_from_now_is_after_the_latest_of_all_streams_behind_it() -> None:
    """Those that it does not read itself count as well: what is made of them comes after them."""
    one = the(begun("now"))
    assert one.since_us == BILLS_US
    assert {name: input.next for name, input in one.inputs.items()} == {"high": 3, "bills": 6}
    later = {**HEADS, "calls": head(4, 200)}
    one = the(begun("now", heads=later))
    assert one.since_us == 200
    assert one.inputs["bills"].since.given == {"ts": 200}


def test_from_the_oldest_is_after_what_channels_have_let_go_of() -> None:
    one = the(begun("oldest"))
    assert one.since_us == BILLS_US
    assert one.inputs["high"].since.given == {"ts": HIGH_US}
    nothing_is_gone = dict.fromkeys(HEADS, Head())
    assert not begun("oldest", heads=nothing_is_gone).fragments


def test_from_the_start_reads_again_what_was_there() -> None:
    found = begun("start", "SELECT ts, home FROM bills")
    one = the(found)
    assert one.since_us is None
    assert one.inputs["bills"].before == "bills.2"
    assert found.again == {"bills.2": Reread("bills", 0, 12, BILLS_US)}


def test_without_an_event_time_it_is_from_the_next_batch_on() -> None:
    one = the(begun("now", "SELECT text FROM notes WHERE text = 'a'"))
    assert one.is_untimed and one.since_us is None
    assert one.inputs["notes"].next == 2


def test_what_has_ended_is_refused_from_now_on() -> None:
    with pytest.raises(InputError, match="bills has ended: s2 would see no rows if it began now"):
        begun("now", "SELECT ts FROM bills", {**HEADS, "bills": head(6, BILLS_US, ended=True)})
