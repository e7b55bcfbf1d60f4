"""Rows far in the future: set aside where the stream says how far ahead they may be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from channels.disk import Died, dying_at
from channels.ingest.places import Place, S, place, replay, run

pytestmark = pytest.mark.core

NOW_S = 1_000_000
DAY_S = 86_400


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [float(NOW_S)]
    monkeypatch.setattr("penstock.channels.ingest.entrance.time.time", lambda: now_s[0])
    return now_s


def bounded(root: Path, ahead_s: int = DAY_S, lateness_us: int | None = 5 * S) -> Place:
    here = place(root, lateness_us)
    here.stream = replace(here.stream, ahead_us=ahead_s * S)
    return here


def test_one_row_far_ahead_makes_nothing_after_it_late(tmp_path: Path) -> None:
    here = bounded(tmp_path)
    here.put("a.csv", f"{NOW_S},0", "2999-01-01T00:00:00Z,1", f"{NOW_S + 1},2", f"{NOW_S - 3},3")
    run(here.start())
    assert here.rows() == [0, 2, 3]
    (line,) = here.set_aside()
    assert json.loads(line) == {
        "reason": "ahead",
        "at": "1970-01-12T13:46:40.000000Z",
        "row": {"ts": "2999-01-01 00:00:00+00:00", "n": 1},
    }
    assert here.letters.counts() == {"malformed": 0, "late": 0, "ahead": 1}


def test_without_a_bound_what_comes_after_it_tells_what_it_was_late_after(tmp_path: Path) -> None:
    here = place(tmp_path, lateness_us=5 * S)
    here.put("a.csv", f"{NOW_S},0", "2999-01-01T00:00:00Z,1", f"{NOW_S + 1},2")
    run(here.start())
    (line,) = here.set_aside()
    letter = json.loads(line)
    assert (letter["reason"], letter["at"]) == ("late", "2999-01-01T00:00:00.000000Z")


def test_a_bound_needs_no_lateness(tmp_path: Path) -> None:
    here = bounded(tmp_path, lateness_us=None)
    here.put("a.csv", "5,0", f"{NOW_S + DAY_S + 1},1", "4,2")
    run(here.start())
    assert here.rows() == [0, 2]
    assert here.reasons() == ["ahead"]


def test_a_stream_ahead_of_the_clock_may_go_on_from_where_it_is(tmp_path: Path) -> None:
    here = bounded(tmp_path, ahead_s=10)
    far = [NOW_S + 10, NOW_S + 20, NOW_S + 31, NOW_S + 30]
    here.put("a.csv", *(f"{one},{at}" for at, one in enumerate(far[:2])))
    run(here.start())
    here.put("b.csv", *(f"{one},{at + 2}" for at, one in enumerate(far[2:])))
    run(here.start())
    assert here.rows() == [0, 1, 3]
    assert here.reasons() == ["ahead"]


def test_what_was_judged_stays_judged(tmp_path: Path, clock: list[float]) -> None:
    """A batch carries the clock it was judged by, and is not judged again."""
    here = bounded(tmp_path)
    far_s = NOW_S + 3 * DAY_S
    here.put("a.csv", f"{NOW_S},0", f"{far_s},1")
    run(here.start())
    clock[0] = far_s
    run(here.start())
    assert here.rows() == [0]
    assert here.reasons() == ["ahead"]
    assert [manifest.arrived_s for manifest in here.manifests()] == [float(NOW_S)]


def test_what_was_not_committed_is_judged_once(tmp_path: Path, clock: list[float]) -> None:
    """Whoever dies on the way leaves no letter about a row that later counts."""
    far_s = NOW_S + 3 * DAY_S
    for death in range(20):
        root = tmp_path / str(death)
        root.mkdir()
        here = bounded(root)
        here.put("a.csv", f"{NOW_S},0", f"{far_s},1")
        clock[0] = NOW_S
        try:
            with dying_at(death, after=True):
                run(here.start())
        except Died:
            pass
        clock[0] = far_s
        run(here.start())
        found = (here.rows(), here.reasons())
        assert found in (([0, 1], []), ([0], ["ahead"]))


def test_parquet_with_a_row_ahead_is_not_linked(tmp_path: Path) -> None:
    here = bounded(tmp_path)
    here.stream = replace(here.stream, source=replace(here.stream.source, format="parquet"))
    moments = pa.array([NOW_S * S, (NOW_S + 2 * DAY_S) * S], pa.timestamp("us", "UTC"))
    rows = pa.table({"ts": moments, "n": pa.array([0, 1], pa.int32())})
    pq.write_table(rows, tmp_path / "in" / "a.parquet")
    run(here.start())
    assert here.rows() == [0]
    assert here.reasons() == ["ahead"]


def test_a_row_far_ahead_does_not_hold_up_a_paced_replay(tmp_path: Path) -> None:
    """Played at its own pace, it would be due in centuries, and everything after it with it."""
    here = replay(tmp_path, "10,0", "2999-01-01T00:00:00Z,1", "10,2", speedup=1.0)
    here.stream = replace(here.stream, ahead_us=DAY_S * S)
    run(here.start())
    assert here.rows() == [0, 2]
    assert here.reasons() == ["ahead"]
