"""Whether the disk has room for the windows of joins: by what streams say, and by how they flow."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from control.controller.facts import story
from control.toys import TroubledCatalog
from penstock.channels.channel import Channel
from penstock.channels.files import write_files
from penstock.channels.writer import Writer
from penstock.control import disk_room
from penstock.control.controller import Controller
from penstock.control.disk_room import SeenStream
from penstock.control.home import Home
from penstock.control.notices import ROOM_EVERY_S
from penstock.model.durations import US_PER_S

JOINED = """
streams:
  bids: {source: {generate: nexmark.bids, rate: 10000, speedup: 1}, lateness: 1s}
  auctions: {source: {generate: nexmark.auctions, rate: 10000, speedup: 1}, lateness: 1s}
queries:
  pairs: SELECT a.id, b.price FROM auctions a JOIN bids b ON a.id = b.auction
    AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR
"""
FEED = """
streams:
  calls: {source: {directory: calls, format: csv}, schema: "ts timestamp, k bigint", event_time: ts, lateness: 1s}
  taps: {source: {directory: taps, format: csv}, schema: "at timestamp, k bigint", event_time: at, lateness: 1s}
queries:
  pairs: SELECT l.ts, l.k FROM calls l JOIN taps r ON l.k = r.k
    AND r.at BETWEEN l.ts - INTERVAL 1 HOUR AND l.ts + INTERVAL 1 HOUR
"""  # noqa: E501


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What is free on the disk, as its last value; whatever it is here."""
    told = [10**15]
    monkeypatch.setattr(disk_room, "free_bytes", lambda folder: told[-1])
    return told


def test_what_will_not_fit_is_said_when_it_is_submitted(
    controller: Controller, home: Home, free: list[int]
) -> None:
    units = controller.submit("big", "yaml", JOINED, ".")
    assert controller.notices.room_warnings(units) == []
    free.append(10**6)
    (warning,) = controller.notices.room_warnings(units)
    assert warning.startswith("the windows of pairs need ")
    assert "(auctions 600 rows/s for 3,600 s), and 1 MB are free in " in warning
    assert warning.endswith(
        f"{home.state}: shorten the time bound in ON, select fewer columns, or keep the state on "
        "a larger disk"
    )


def give(channel: Channel, batches: int, rows: int) -> None:
    """Batches of a second each."""
    writer = Writer(channel, 1)
    for number in range(batches):
        files = write_files(pa.table({"k": pa.array(range(rows))}), writer, number)
        writer.commit(number, files, number * US_PER_S, latest={})


def test_what_will_not_fit_is_told_while_it_runs(
    controller: Controller, catalog: TroubledCatalog, home: Home, free: list[int]
) -> None:
    controller.submit("feed", "yaml", FEED, str(home.path))
    for stream in ("calls", "taps"):
        give(controller.channel(stream), batches=5, rows=1_000)
    now_s = 1_000.0

    def looked() -> list[str]:
        nonlocal now_s
        now_s += ROOM_EVERY_S
        controller.notices.note_room(now_s)
        return [told for told in story(catalog) if "room" in told.split(":")[0]]

    assert looked() == []
    free.append(10**6)
    (told,) = looked()
    assert told.startswith("no room pairs: the windows of pairs need ")
    assert "calls 1,000 rows/s for 3,600 s; taps 1,000 rows/s for 3,600 s" in told
    assert looked() == [told], "it is told once"
    free.append(10**15)
    assert looked() == [told, "room pairs: its windows fit on the disk again"]


def test_how_a_stream_flows_is_seen_in_its_manifests(tmp_path: Path) -> None:
    channel = Channel.open(tmp_path / "calls")
    assert SeenStream.of(channel) == SeenStream(None, 0.0)
    give(channel, batches=5, rows=100)
    seen, bytes_ = SeenStream.of(channel), sum(manifest.bytes for manifest in channel.kept())
    assert seen.flow is not None
    assert (seen.flow.rows_per_s, seen.flow.row_bytes) == (100, bytes_ / 500)
    assert seen.kept_bytes == bytes_


def test_batches_that_are_gone_are_not_looked_at(tmp_path: Path) -> None:
    assert SeenStream.of(Channel(tmp_path / "nowhere")) == SeenStream(None, 0.0)
    channel = Channel.open(tmp_path / "calls")
    give(channel, batches=5, rows=100)
    channel.entry(1).unlink()
    seen = SeenStream.of(channel)
    assert seen.flow is not None and seen.flow.rows_per_s == 75


def test_a_stream_that_has_ended_flows_no_more(tmp_path: Path) -> None:
    channel = Channel.open(tmp_path / "calls")
    give(channel, batches=5, rows=100)
    Writer(channel, 2).commit(5, (), None, True)
    assert SeenStream.of(channel).flow is None
