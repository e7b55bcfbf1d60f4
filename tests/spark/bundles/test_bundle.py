"""Bundles under faults: whatever dies and whoever takes over, every row counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.files import write_files
from penstock.channels.writer import Writer
from penstock.errors import RunError
from penstock.kernels.window_plan import WindowPlan, plan_windows
from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse
from penstock.spark.bundles.bundle import Bundle, Delivery
from penstock.spark.bundles.job import RoundJob

DEPLOYMENT = """
streams:
  s:
    source: {directory: in, format: csv}
    schema: ts timestamp, k string, v bigint, x double
    event_time: ts
    lateness: 0s
queries:
  sums: "SELECT k, window.end AS at, sum(x) AS x, count(*) AS n FROM s GROUP BY k, window(ts, '10 seconds')"
  slides: "SELECT v % 3 AS g, window.start AS at, sum(x) AS x FROM s GROUP BY v % 3, window(ts, '20 seconds', '5 seconds')"
  shouts: "SELECT upper(k) AS loud, window.end AS at, max(v) AS v FROM s GROUP BY upper(k), window(ts, '15 seconds')"
  visits: "SELECT k, session_window.start AS since, session_window.end AS at, sum(x) AS x, count(*) AS n FROM s WHERE v > 80 GROUP BY k, session_window(ts, '700 milliseconds')"
"""
STEPS = ("claimed", "taken", "computed", "composed", "committed", "delivered", "snapshotted")
NAMES = ("sums", "slides", "shouts", "visits")
Results = dict[str, Counter]


class Died(BaseException):
    """Stands for the end of a process: whatever it had in memory is gone."""


@pytest.fixture(scope="module")
def plans() -> dict[str, WindowPlan]:
    network = parse_deployment(DEPLOYMENT, "s.yaml", Path()).network
    found = {}
    for fragment in fuse(network):
        plan = plan_windows(fragment)
        assert isinstance(plan, WindowPlan), plan
        found[plan.name] = plan
    return found


class Feed:
    """A channel with batches of seeded rows, the last of which ends the stream."""

    def __init__(self, folder: Path, batches: int, rows: int = 40) -> None:
        self.channel = Channel.open(folder)
        self._writer = Writer(self.channel, 1)
        self._random = Random(7)
        self._batches, self._rows = batches, rows
        self._given = count()
        self._now_us = 1_700_000_000_000_000

    @property
    def has_more(self) -> bool:
        last = self.channel.last()
        return last is None or not last.ended

    def give(self) -> None:
        """One more batch."""
        number, random = next(self._given), self._random
        times = sorted(self._now_us + random.randrange(4_000_000) for _ in range(self._rows))
        self._now_us += 4_000_000
        rows = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
                "k": [random.choice(["a", "b", None]) for _ in times],
                "v": pa.array([random.randrange(100) for _ in times], pa.int64()),
                "x": [random.random() * 10 ** random.randrange(-9, 9) for _ in times],
            }
        )
        files = write_files(rows, self._writer, number)
        self._writer.commit(number, files, self._now_us, ended=number + 1 == self._batches)


class World:
    """Bundles that share a folder and a feed; each has a log of its own."""

    def __init__(self, session: SparkSession, folder: Path, batches: int = 12) -> None:
        self.session, self.folder = session, folder
        self.feed = Feed(folder / "channel", batches)
        self._names = count()
        self._delivered = dict.fromkeys(NAMES, (-1, False))
        self._results: Results = {name: Counter() for name in NAMES}
        # Nothing read may be freed: what another epoch reads again must be there.
        self.feed.channel.register("everything")

    def bundle(self, on_step: Callable[[str], None] = lambda name: None) -> Bundle:
        return Bundle(
            self.session,
            self.folder / "logs",
            f"log_{next(self._names)}",
            lambda name: self.folder / "claims" / name,
            lambda _: self.feed.channel,
            lambda name: self.folder / "runs" / name,
            lambda whole: self.folder / "groups" / whole,
            deliver=self._take,
            on_step=on_step,
        )

    def _take(self, deliveries: Sequence[Delivery]) -> dict[int, BaseException]:
        """As sinks do: a batch whose number is not above the last one's is there already."""
        for delivery in deliveries:
            name, given = delivery.running.member.name, delivery.given
            if given.batch_id > self._delivered[name][0]:
                self._delivered[name] = (given.batch_id, delivery.running.ended)
                self._results[name].update(tuple(row.values()) for row in given.rows.to_pylist())
        return {}

    def results(self) -> Results:
        assert all(ended for _, ended in self._delivered.values())
        return self._results


@pytest.fixture(scope="module")
def undisturbed(session: SparkSession, plans, tmp_path_factory) -> Results:
    world = World(session, tmp_path_factory.mktemp("undisturbed"))
    bundle = world.bundle()
    for plan in plans.values():
        bundle.add(plan, 1)
    while world.feed.has_more:
        world.feed.give()
        bundle.round()
    found = world.results()
    assert all(len(rows) > 10 for rows in found.values())
    return found


def test_several_jobs_at_once_give_the_same(
    session: SparkSession, plans, undisturbed: Results, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("penstock.spark.bundles.round_reading._MEMBERS_OF_A_JOB", 2)
    world, sizes = World(session, tmp_path), set()
    run = RoundJob.run

    def noted(job: RoundJob, files: Sequence[Path], rows: int):
        sizes.add(len(job._plans))
        # A job with two members fails: its members are tried apart.
        if len(job._plans) == 2:
            raise ValueError("not together")
        return run(job, files, rows)

    monkeypatch.setattr(RoundJob, "run", noted)
    bundle = world.bundle()
    bundle._reader._cores = 3
    for plan in plans.values():
        bundle.add(plan, 1)
    while world.feed.has_more:
        world.feed.give()
        bundle.round()
    assert sizes == {1, 2}, "one of three jobs has two of the four members"
    assert world.results() == undisturbed


@pytest.mark.parametrize("step", STEPS)
def test_death_at_any_step_changes_nothing(
    session: SparkSession, plans, undisturbed: Results, tmp_path: Path, step: str, monkeypatch
) -> None:
    monkeypatch.setattr("penstock.spark.bundles.bundle._SMALLEST_SNAPSHOT", 1)
    world = World(session, tmp_path)
    deaths = 0
    random = Random(step)

    def die(name: str) -> None:
        nonlocal deaths
        if name == step and deaths < 5 and random.random() < 0.4:
            deaths += 1
            raise Died

    bundle, epoch = None, count(1)
    while True:
        try:
            if bundle is None:
                owner = next(epoch)
                bundle = world.bundle(die)
                for plan in plans.values():
                    bundle.add(plan, owner)
            while world.feed.has_more:
                world.feed.give()
                bundle.round()
            bundle.round()
            break
        except Died:
            bundle = None
    assert deaths >= 2, "the fault must have struck"
    assert world.results() == undisturbed


def test_members_move_between_two_bundles_while_both_work(
    session: SparkSession, plans, undisturbed: Results, tmp_path: Path
) -> None:
    world = World(session, tmp_path)
    sides = [world.bundle(), world.bundle()]
    at = dict.fromkeys(plans, 0)
    epochs = dict.fromkeys(plans, 1)
    for plan in plans.values():
        sides[0].add(plan, 1)
    random, moves = Random(1), 0
    while world.feed.has_more:
        world.feed.give()
        name = random.choice(list(plans))
        sides[at[name]].release(name)
        for side in sides:
            side.round()
        at[name], epochs[name], moves = 1 - at[name], epochs[name] + 1, moves + 1
        sides[at[name]].add(plans[name], epochs[name])
    for side in sides:
        side.round()
    assert moves == 12
    assert world.results() == undisturbed


def test_an_owner_that_wakes_up_late_is_left_without_the_member(
    session: SparkSession, plans, undisturbed: Results, tmp_path: Path
) -> None:
    world = World(session, tmp_path)
    asleep, other = world.bundle(), world.bundle()
    for plan in plans.values():
        asleep.add(plan, 1)
    for _ in range(4):
        world.feed.give()
        asleep.round()
    world.feed.give()
    other.add(plans["sums"], 2)
    asleep.round()  # It knows of nothing, computes all four, and finds its number taken.
    assert set(asleep.members) == {"slides", "shouts", "visits"}
    while world.feed.has_more:
        world.feed.give()
        asleep.round()
        other.round()
    asleep.round()
    other.round()
    assert world.results() == undisturbed


def test_a_former_owner_cannot_come_back(session: SparkSession, plans, tmp_path: Path) -> None:
    world = World(session, tmp_path)
    world.bundle().add(plans["sums"], 2)
    with pytest.raises(RunError, match="sums"):
        world.bundle().add(plans["sums"], 1)


@pytest.mark.parametrize("damage", ["cut", "flip", "lose"])
def test_damage_is_noticed_and_named(
    session: SparkSession, plans, tmp_path: Path, damage: str
) -> None:
    world = World(session, tmp_path)
    bundle = world.bundle()
    bundle.add(plans["sums"], 1)
    for _ in range(3):
        world.feed.give()
        bundle.round()
    path = world.folder / "logs" / "log_0" / "log" / "0000000001.round"
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        at = len(content) - 20
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    else:
        path.unlink()
    with pytest.raises(RunError, match=r"0000000001\.round"):
        world.bundle().add(plans["sums"], 2)


def test_a_failed_commit_is_done_again(
    session: SparkSession, plans, undisturbed: Results, tmp_path: Path
) -> None:
    world = World(session, tmp_path)
    failures, commits = 0, count()

    def fail(name: str) -> None:
        nonlocal failures
        # The first commit of all, with which members arrive, and some later ones.
        if name == "composed" and next(commits) in (0, 3, 4, 9):
            failures += 1
            raise OSError("no space left on device")

    bundle = world.bundle(fail)
    for plan in plans.values():
        bundle.add(plan, 1)
    while world.feed.has_more:
        world.feed.give()
        while True:
            try:
                bundle.round()
                break
            except OSError:
                continue
    assert failures == 4
    assert world.results() == undisturbed


def test_members_that_leave_while_nothing_can_be_written_disturb_nobody(
    session: SparkSession, plans, undisturbed: Results, tmp_path: Path
) -> None:
    world = World(session, tmp_path)
    is_full, failures = False, 0

    def fail(name: str) -> None:
        nonlocal failures
        if name == "composed" and is_full:
            failures += 1
            raise OSError("no space left on device")

    bundle = world.bundle(fail)
    for plan in plans.values():
        bundle.add(plan, 1)
    for _ in range(4):
        world.feed.give()
        bundle.round()
    is_full, leaving = True, list(plans)[:2]
    for name in leaving:
        bundle.release(name)
        with pytest.raises(OSError, match="no space left"):
            bundle.settle()
        bundle.abandon(name)
    is_full = False
    assert failures == 2
    assert set(bundle.members) == set(plans) - set(leaving)
    for name in leaving:
        bundle.add(plans[name], 2)
    while world.feed.has_more:
        world.feed.give()
        bundle.round()
    bundle.round()
    assert world.results() == undisturbed
