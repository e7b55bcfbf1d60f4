"""Dead letters: kept for people, counted once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.channels.dead_letters import DeadLetters
from penstock.feeds.pieces import Reject

from channels.disk import names

pytestmark = pytest.mark.core

NONE = {"malformed": 0, "late": 0}


@pytest.fixture
def letters(tmp_path: Path) -> DeadLetters:
    return DeadLetters(tmp_path / "letters")


def rejects(count: int) -> list[Reject]:
    return [Reject("a.csv", at, "n: 'x' is no int", "x") for at in range(count)]


def late(count: int) -> pa.Table:
    return pa.table({"n": list(range(count))})


def test_nothing_set_aside_leaves_nothing(letters: DeadLetters) -> None:
    assert letters.counts() == NONE
    assert letters.put_rejects("ingest-0", []) == 0
    assert letters.put_late("ingest-0", late(0)) == 0
    assert not letters.folder.exists()
    letters.forget("ingest-0")


def test_rows_are_kept_as_lines_of_json(letters: DeadLetters) -> None:
    moment = datetime(2024, 2, 29, tzinfo=UTC)
    rows = pa.table({"ts": pa.array([moment], pa.timestamp("us", "UTC")), "raw": [b"\xff"]})
    assert letters.put_rejects("ingest-0", rejects(2)) == 2
    assert letters.put_late("ingest-0", rows, [-1]) == 1
    assert names(letters.folder) == ["ingest-0.late-1.jsonl", "ingest-0.malformed-2.jsonl"]
    malformed = (letters.folder / "ingest-0.malformed-2.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in malformed] == [vars(reject) for reject in rejects(2)]
    (line,) = (letters.folder / "ingest-0.late-1.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "reason": "late",
        "at": "1969-12-31T23:59:59.999999Z",
        "row": {"ts": "2024-02-29 00:00:00+00:00", "raw": "b'\\xff'"},
    }


def test_files_and_rows_without_a_time_are_kinds_of_their_own(letters: DeadLetters) -> None:
    whole = Reject("b.csv", 0, "b.csv cannot be read", "")
    letters.put_rejects("ingest-0", [*rejects(1), whole])
    letters.put_untimed("ingest-0", late(2))
    assert letters.counts() == {"malformed": 1, "late": 0, "skipped": 1, "untimed": 2}
    assert letters.reasons() == {
        "malformed": "n: 'x' is no int",
        "skipped": "b.csv cannot be read",
        "untimed": "no event time",
    }


def test_the_newest_are_told_oldest_first(letters: DeadLetters) -> None:
    assert letters.newest(5) == []
    letters.put_late("ingest-0000000001", late(3))
    letters.put_rejects("ingest-0000000002", rejects(1))
    assert letters.newest(3) == [
        {"kind": "late", "reason": "late", "row": {"n": 1}},
        {"kind": "late", "reason": "late", "row": {"n": 2}},
        {"kind": "malformed", **vars(rejects(1)[0])},
    ]


def test_of_several_readers_one_is_told(letters: DeadLetters) -> None:
    for reader in ("fast", "slow_one"):
        letters.put_rejects(f"{reader}-0", rejects(2))
    assert len(letters.newest(10)) == 2


def test_parts_add_up(letters: DeadLetters) -> None:
    for at in range(3):
        letters.put_rejects(f"ingest-{at:010d}", rejects(at))
        letters.put_late(f"ingest-{at:010d}", late(10))
    assert letters.counts() == {"malformed": 3, "late": 30}


def test_rows_too_far_ahead_are_kept_with_the_clock(letters: DeadLetters) -> None:
    rows = pa.table({"ts": pa.array([253402300800000000], pa.timestamp("us", "UTC"))})
    assert letters.put_ahead("ingest-0", rows, 1_000_000) == 1
    (line,) = (letters.folder / "ingest-0.ahead-1.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "reason": "ahead",
        "at": "1970-01-01T00:00:01.000000Z",
        "row": {"ts": "+10000-01-01T00:00:00.000000Z"},
    }
    assert letters.counts() == NONE | {"ahead": 1}


def test_a_part_put_again_is_counted_once(letters: DeadLetters) -> None:
    for _ in range(3):
        letters.put_rejects("ingest-0", rejects(2))
    assert letters.counts() == {"malformed": 2, "late": 0}


def test_a_part_that_turns_out_differently_is_forgotten_first(letters: DeadLetters) -> None:
    letters.put_rejects("ingest-1", rejects(2))
    letters.put_late("ingest-1", late(5))
    letters.put_rejects("ingest-10", rejects(1))
    letters.forget("ingest-1")
    letters.put_rejects("ingest-1", rejects(3))
    assert letters.counts() == {"malformed": 4, "late": 0}


def test_several_readers_of_one_generator_count_once(letters: DeadLetters) -> None:
    for reader in ("fast", "slow_one"):
        for at in range(0, 4 if reader == "fast" else 2):
            letters.put_late(f"{reader}-{at:012d}", late(10))
    assert letters.counts() == {"malformed": 0, "late": 40}


def test_what_is_half_written_is_not_counted(letters: DeadLetters) -> None:
    letters.put_rejects("ingest-0", rejects(1))
    (letters.folder / ".ingest-1.malformed-9.jsonl.3f2a").write_text("{")
    assert letters.counts() == {"malformed": 1, "late": 0}
