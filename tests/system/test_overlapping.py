"""Random overlapping queries come and go: shared or not, each gives the same rows."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from penstock.control.answer_models import SubmittedAnswer
from system.under_test import Rows, UnderTest
from waiting import until

START = datetime(2026, 1, 1)
BEFORE = datetime(2000, 1, 1, tzinfo=UTC)
PER_S, SPEEDUP = 20, 40
ENOUGH = timedelta(seconds=60)
"""Of event time: enough for some windows of every query."""
STREAM = f"""
streams:
  rows:
    source: {{replay: rows.csv, speedup: {SPEEDUP}}}
    schema: ts timestamp, k int, n bigint
    event_time: ts
    lateness: 2s
"""
AGGREGATES = (("sum(n)", "count(*)"), ("count(*)", "max(n)", "min(n)"))
WINDOWS = ("'10 seconds'", "'20 seconds'", "'20 seconds', '10 seconds'")
CONDITIONS = ("", "WHERE k < 5", "WHERE k < 5 AND n % 3 > 0")
HAVINGS = ("", "HAVING count(*) > 5", "HAVING count(*) % 2 = 0")


def write_rows(path: Path, seconds: int) -> None:
    """Rows of so many seconds of event time."""
    count = seconds * PER_S
    columns = {
        "ts": [START + timedelta(microseconds=at * 1_000_000 // PER_S) for at in range(count)],
        "k": pa.array([at * at % 7 for at in range(count)], pa.int32()),
        "n": pa.array([at * 31 % 101 for at in range(count)], pa.int64()),
    }
    pa_csv.write_csv(pa.table(columns), path)


def draw_query(rng: random.Random) -> str:
    """One of many that overlap: of few windows and aggregates, with columns in any order."""
    results = list(rng.choice(AGGREGATES))
    rng.shuffle(results)
    keys = rng.choice(("", "k"))
    shown = ", ".join(f"{result} AS {rng.choice('xyz')}{at}" for at, result in enumerate(results))
    groups = [*filter(None, [keys]), f"window(ts, {rng.choice(WINDOWS)})"]
    rng.shuffle(groups)
    return (
        f"SELECT window.start AS since, window.end AS till, {shown}{keys and ', k'} FROM rows "
        f"{rng.choice(CONDITIONS)} GROUP BY {', '.join(groups)} {rng.choice(HAVINGS)}"
    )


@dataclass
class Pair:
    """A query that was submitted twice, shared and not, and what the shared one gave.

    That is known once it was looked at, at last when it was dropped: ``rows`` up to ``until_us`` of
    event time.
    """

    number: int
    query: str
    since: datetime
    is_shared: bool
    rows: Rows | None = None
    until_us: int = 0

    @property
    def shared(self) -> str:
        return f"shared{self.number}"

    @property
    def alone(self) -> str:
        return f"alone{self.number}"

    def counted(self, rows: Rows) -> Rows:
        """The rows of windows that begin after both counted, and end before it was looked at."""
        first, last = str(self.since), str(_moment(self.until_us))
        return Rows(
            {
                row: count
                for row, count in rows.items()
                if first < str(row[0]) and str(row[1]) <= last
            }
        )


class Play:
    """Queries that come and go while a stream lasts, drawn by a seed."""

    def __init__(self, system: UnderTest, rng: random.Random) -> None:
        self._system = system
        self._rng = rng
        self.pairs: list[Pair] = []

    def submit(self, query: str | None = None) -> None:
        """A query, shared and unshared in any order."""
        query = query or draw_query(self._rng)
        number = len(self.pairs)
        made: dict[bool, SubmittedAnswer] = {}
        for share in self._rng.sample((True, False), 2):
            name = f"{'shared' if share else 'alone'}{number}"
            made[share] = self._system.client.submit(name, "sql", query, ".", share=share)
            self._system.channel(name).register("outside_test")
        begins = [begin.since for answer in made.values() for begin in answer.begins]
        since = max((datetime.fromisoformat(begin) for begin in begins if begin), default=BEFORE)
        sharing = made[True].sharing
        assert sharing is not None and not (made[False].sharing and made[False].sharing.shared)
        self.pairs.append(Pair(number, query, since, bool(sharing.shared)))

    def drop(self) -> None:
        """The shared one of a pair goes; others may go on reading what it computes."""
        pair = self._rng.choice([pair for pair in self.pairs if pair.rows is None])
        self._look(pair)
        self._system.client.drop(pair.shared)

    def _look(self, pair: Pair) -> None:
        pair.until_us = self._reached_us(pair.shared)
        pair.rows = self._system.rows(pair.shared)

    def _reached_us(self, stream: str) -> int:
        last = self._system.channel(stream).last()
        return 0 if last is None else last.watermark_us or 0

    def wait(self) -> None:
        """For a random while, as the stream goes."""
        base = self.pairs[0].alone
        more = self._system.count(base) + self._rng.randint(1, 4)
        until(lambda: self._system.count(base) >= more, 60, "results")

    def check(self) -> None:
        """Every pair has given the same, from when both counted until it was looked at."""
        for pair in self.pairs:
            self._check(pair)

    def _check(self, pair: Pair) -> None:
        is_left = pair.rows is None
        if is_left:
            enough_us = int((pair.since + ENOUGH).timestamp() * 1e6)
            until(lambda: self._reached_us(pair.shared) >= enough_us, 120, f"results of {pair}")
            self._look(pair)
        until(lambda: self._reached_us(pair.alone) >= pair.until_us, 120, f"the same of {pair}")
        assert pair.rows is not None
        ours, theirs = pair.counted(pair.rows), pair.counted(self._system.rows(pair.alone))
        assert ours == theirs, f"{pair.query}: {ours - theirs} and not {theirs - ours}"
        assert ours or not is_left, f"{pair.query} gave nothing"


def _moment(at_us: int) -> datetime:
    return datetime.fromtimestamp(at_us // 1_000_000, UTC)


BASE = (
    "SELECT window.start AS since, window.end AS till, sum(n) AS s, count(*) AS c FROM rows "
    "GROUP BY window(ts, '10 seconds')"
)


def begin(system: UnderTest, folder: Path, seconds: int, rng: random.Random) -> Play:
    """A stream that lasts so long, and the first query, which stays."""
    write_rows(folder / "rows.csv", seconds)
    system.submit("rows", STREAM)
    play = Play(system, rng)
    play.submit(BASE)
    until(lambda: system.count("alone0") > 0, 120, "the first results")
    play.submit(f"{BASE} HAVING sum(n) > 10000")
    assert play.pairs[1].is_shared
    return play


def seeded(minutes: float | None = None) -> random.Random:
    seed = int(os.environ.get("PENSTOCK_SEED") or random.SystemRandom().randrange(10**6))
    told = "" if minutes is None else f" MINUTES={minutes:g}"
    print(f"\nagain with PENSTOCK_SEED={seed}{told}", flush=True)
    return random.Random(seed)


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[UnderTest]:
    made = UnderTest(tmp_path, nodes=2, host="inline")
    yield made
    made.stop()


@pytest.mark.timeout(300)
def test_shared_or_not_the_rows_are_the_same(inline: UnderTest, tmp_path: Path) -> None:
    play = begin(inline, tmp_path, 6_000, seeded())
    for step in range(4):
        play.submit()
        play.wait()
        if step % 2:
            play.drop()
    play.check()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[UnderTest]:
    made = UnderTest(tmp_path, nodes=2)
    yield made
    made.stop()


def kill_node(system: UnderTest, node: str) -> None:
    former = system.pid(node)
    system.kill_node(node)
    until(lambda: system.pid(node) != former, 120, f"node {node} is back")


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_the_same_while_nodes_and_controller_are_killed(
    processes: UnderTest, tmp_path: Path
) -> None:
    minutes = float(os.environ.get("PENSTOCK_MINUTES") or 5)
    rng = seeded(minutes)
    play = begin(processes, tmp_path, round((minutes + 15) * 60 * SPEEDUP), rng)
    killed = {"node": 0, "controller": 0}
    until_s = time.monotonic() + minutes * 60
    while time.monotonic() < until_s:
        play.submit()
        play.wait()
        if rng.random() < 0.5:
            play.drop()
        if len(play.pairs) % 3 == 0:
            kill_node(processes, rng.choice("ab"))
            killed["node"] += 1
        if len(play.pairs) % 5 == 0:
            processes.kill_controller()
            processes.restart_controller()
            killed["controller"] += 1
    print(f"  {len(play.pairs)} pairs, killed {killed}")
    play.check()
    assert all(killed.values())
