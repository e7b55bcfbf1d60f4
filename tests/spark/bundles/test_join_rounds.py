"""Joins in bundles under faults: whatever dies, moves or is damaged, every pair comes once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random

import pytest
from join_feed import SECOND_US, Feed, Row
from pyspark.sql import SparkSession

from penstock.kernels.join_plan import JoinPlan, plan_join
from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse
from penstock.spark.bundles.bundle import Bundle, Delivery

WITHIN = "r.at BETWEEN l.ts - INTERVAL 6 SECONDS AND l.ts + INTERVAL 3 SECONDS"
DEPLOYMENT = f"""
streams:
  calls: {{source: {{directory: in, format: csv}}, schema: "ts timestamp, k string, n bigint", event_time: ts, lateness: 1s}}
  taps: {{source: {{directory: in, format: csv}}, schema: "at timestamp, k string, m bigint", event_time: at, lateness: 1s}}
queries:
  pairs: "SELECT l.ts, l.n, r.m FROM calls l JOIN taps r ON l.k = r.k AND l.n % 7 <> r.m % 7 AND {WITHIN}"
  all_calls: "SELECT l.ts, l.n, r.m FROM calls l LEFT JOIN taps r ON l.k = r.k AND {WITHIN}"
  loud: "SELECT l.ts, l.n, r.m FROM (SELECT ts, upper(k) AS k, n FROM calls) l JOIN (SELECT at, upper(k) AS k, m FROM taps) r ON l.k = r.k AND {WITHIN}"
"""  # noqa: E501
NAMES = ("pairs", "all_calls", "loud")
STEPS = ("claimed", "taken", "joined", "composed", "committed", "delivered", "snapshotted")
Results = dict[str, Counter]


class Died(BaseException):
    """Stands for the end of a process: whatever it had in memory is gone."""


@pytest.fixture(scope="module")
def plans() -> dict[str, JoinPlan]:
    found = {}
    for fragment in fuse(parse_deployment(DEPLOYMENT, "d.yaml", Path()).network):
        plan = plan_join(fragment)
        assert isinstance(plan, JoinPlan), plan
        found[plan.name] = plan
    assert [bool(plan.left.left_to_spark) for plan in map(found.get, NAMES) if plan] == [
        False,
        False,
        True,
    ]
    return found


class World:
    """Bundles that share a folder and two feeds; each has a log of its own."""

    def __init__(self, session: SparkSession, folder: Path, batches: int = 10) -> None:
        self.session, self.folder = session, folder
        self.calls = Feed(folder / "calls", ("ts", "k", "n"), 1, batches)
        self.taps = Feed(folder / "taps", ("at", "k", "m"), 2, batches)
        self._names = count()
        self._delivered = dict.fromkeys(NAMES, (-1, False))
        self._results: Results = {name: Counter() for name in NAMES}

    def bundle(self, on_step: Callable[[str], None] = lambda name: None) -> Bundle:
        channels = {"calls": self.calls.channel, "taps": self.taps.channel}
        return Bundle(
            self.session,
            self.folder / "logs",
            f"log_{next(self._names)}",
            lambda name: self.folder / "claims" / name,
            channels.__getitem__,
            self.runs_of,
            lambda whole: self.folder / "groups" / whole,
            deliver=self._take,
            on_step=on_step,
        )

    def runs_of(self, name: str) -> Path:
        return self.folder / "runs" / name

    def _take(self, deliveries: Sequence[Delivery]) -> dict[int, BaseException]:
        """As sinks do: a batch whose number is not above the last one's is there already."""
        for delivery in deliveries:
            name, given = delivery.running.member.name, delivery.given
            if given.batch_id > self._delivered[name][0]:
                self._delivered[name] = (given.batch_id, delivery.running.ended)
                self._results[name].update((row["n"], row["m"]) for row in given.rows.to_pylist())
        return {}

    @property
    def has_more(self) -> bool:
        return self.calls.has_more or self.taps.has_more

    def give(self) -> None:
        self.calls.give()
        self.taps.give()

    def rounds(self, bundle: Bundle) -> None:
        """Runs all that is to come."""
        while self.has_more:
            self.give()
            bundle.round()
            bundle.advance()
        bundle.round()

    def check(self, *names: str) -> None:
        """Every pair came once, and nothing else."""
        for name in names or NAMES:
            assert self._delivered[name][1], f"{name} has not ended"
            assert self._results[name] == _expected(name, self.calls.rows, self.taps.rows)


def _expected(name: str, calls: Sequence[Row], taps: Sequence[Row]) -> Counter:
    found: Counter = Counter()
    for at_us, key, number in calls:
        partners = [
            other
            for tap_us, tap_key, other in taps
            if -6 * SECOND_US <= tap_us - at_us <= 3 * SECOND_US
            and _same(name, key, tap_key)
            and (name != "pairs" or number % 7 != other % 7)
        ]
        found.update((number, partner) for partner in partners)
        if name == "all_calls" and not partners:
            found[number, None] += 1
    return found


def _same(name: str, key: str | None, other: str | None) -> bool:
    if key is None or other is None:
        return False
    return key.upper() == other.upper() if name == "loud" else key == other


def add_all(bundle: Bundle, plans: dict[str, JoinPlan], epoch: int) -> None:
    for plan in plans.values():
        bundle.add(plan, epoch)


@pytest.mark.parametrize("step", STEPS)
def test_death_at_any_step_changes_nothing(
    session: SparkSession, plans, tmp_path: Path, step: str, monkeypatch
) -> None:
    monkeypatch.setattr("penstock.spark.bundles.bundle._SMALLEST_SNAPSHOT", 1)
    world, random, deaths = World(session, tmp_path), Random(step), 0

    def die(name: str) -> None:
        nonlocal deaths
        if name == step and deaths < 4 and random.random() < 0.4:
            deaths += 1
            raise Died

    owners = count(1)
    while True:
        try:
            owner, bundle = next(owners), world.bundle(die)
            add_all(bundle, plans, owner)
            world.rounds(bundle)
            break
        except Died:
            continue
    assert deaths >= 2, "the fault must have struck"
    world.check()


def test_members_move_between_two_bundles_while_both_work(
    session: SparkSession, plans, tmp_path: Path
) -> None:
    world = World(session, tmp_path)
    sides = [world.bundle(), world.bundle()]
    at, epochs = dict.fromkeys(plans, 0), dict.fromkeys(plans, 1)
    add_all(sides[0], plans, 1)
    random, moves = Random(3), 0
    while world.has_more:
        world.give()
        name = random.choice(NAMES)
        sides[at[name]].release(name)
        for side in sides:
            side.round()
            side.advance()
        at[name], epochs[name], moves = 1 - at[name], epochs[name] + 1, moves + 1
        sides[at[name]].add(plans[name], epochs[name])
    for side in sides:
        side.round()
    assert moves == 10
    world.check()


def test_an_owner_that_wakes_up_late_is_left_without_the_join(
    session: SparkSession, plans, tmp_path: Path
) -> None:
    world = World(session, tmp_path)
    asleep, other = world.bundle(), world.bundle()
    add_all(asleep, plans, 1)
    for _ in range(4):
        world.give()
        asleep.round()
    world.give()
    other.add(plans["pairs"], 2)
    asleep.round()  # It knows of nothing, joins all three, and finds its number taken.
    assert set(asleep.members) == {"all_calls", "loud"}
    while world.has_more:
        world.give()
        asleep.round()
        other.round()
    asleep.round()
    other.round()
    world.check()


@pytest.mark.parametrize("damage", ["cut", "flip", "lose"])
def test_damaged_runs_are_named_and_made_again(
    session: SparkSession, plans, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(session, tmp_path)
    bundle = world.bundle()
    add_all(bundle, plans, 1)
    struck: list[str] = []
    rounds = count()
    with caplog.at_level(logging.WARNING):
        while world.has_more:
            world.give()
            bundle.round()
            # Every third round: what Spark computes takes jobs to make again.
            for name in NAMES if next(rounds) % 3 == 2 else ():
                struck += _strike(world.runs_of(name), damage)
        bundle.round()
    assert len(struck) > 10
    if damage != "lose":
        assert any(path in caplog.text for path in struck), "what is damaged must be named"
    world.check()


def _strike(folder: Path, damage: str) -> Iterator[str]:
    """Damages the newest runs of a folder in place, as a disk does."""
    for path in sorted(folder.glob("*.run"), key=lambda path: path.stat().st_mtime_ns)[-2:]:
        content = path.read_bytes()
        if damage == "lose":
            path.unlink()
        elif damage == "cut":
            path.write_bytes(content[: len(content) // 2])
        else:
            at = len(content) // 2
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        yield path.name


def test_a_damaged_batch_is_named_and_fails_its_readers_alone(
    session: SparkSession, plans, tmp_path: Path
) -> None:
    world = World(session, tmp_path)
    bundle = world.bundle()
    add_all(bundle, plans, 1)
    world.give()
    bundle.round()
    world.give()
    path = sorted(world.taps.channel.data.iterdir())[-1]
    path.write_bytes(path.read_bytes()[:-3])
    bundle.round()
    assert set(bundle.failed) == set(NAMES)
    assert all(path.name in str(error) for error in bundle.failed.values())


def test_what_is_kept_levels_off(session: SparkSession, plans, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("penstock.spark.bundles.bundle._SMALLEST_SNAPSHOT", 1 << 12)
    world = World(session, tmp_path, batches=48)
    bundle = world.bundle()
    bundle.add(plans["pairs"], 1)
    bundle.add(plans["all_calls"], 1)
    sizes: list[dict[str, int]] = []
    while world.has_more:
        world.give()
        bundle.round()
        bundle.advance()
        sizes.append(
            {
                "runs": _bytes(world.folder / "runs"),
                "channels": _bytes(world.calls.channel.data) + _bytes(world.taps.channel.data),
                "log": _bytes(world.folder / "logs"),
                "rows": sum(bundle.state_rows.values()),
            }
        )
    # Windows are 9 s of batches of 2 s, so whatever is kept is there after 10 of them.
    for kind in sizes[0]:
        early = max(size[kind] for size in sizes[10:28])
        late = max(size[kind] for size in sizes[28:])
        assert late <= 1.3 * early, kind
        assert early > 0
    assert len(world.calls.channel.sequences()) < 20
    world.check("pairs", "all_calls")


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
