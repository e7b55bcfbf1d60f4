"""Parts of a join in several bundles: groups move and processes die, every pair comes once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from join_feed import SECOND_US, Feed
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.group_files import GroupFiles
from penstock.channels.writer import Writer
from penstock.control.spreading import spread_fragment
from penstock.errors import InputError
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.join_plan import JoinPlan
from penstock.kernels.planning import plan_fragment
from penstock.lang.deployment import parse_deployment
from penstock.model.fragments import Fragment
from penstock.model.group_table import GroupTable
from penstock.place.fuse import fuse
from penstock.spark.bundles.bundle import Bundle
from penstock.spark.bundles.joins import join_rounds
from penstock.spark.bundles.joins.join_task import JoinPlace, JoinStep, join_rows
from penstock.spark.bundles.light_fragments import LightFragments
from penstock.spark.bundles.light_run import LightRun
from penstock.spark.bundles.messengers import Messengers
from penstock.spark.fragment_folder import FragmentFolder
from penstock.spark.sinks.channel_sink import ChannelSink
from penstock.spark.state import StateFolder
from waiting import until

DEPLOYMENT = """
streams:
  calls: {source: {directory: in, format: csv}, schema: "ts timestamp, k string, n bigint", event_time: ts, lateness: 1s}
  taps: {source: {directory: in, format: csv}, schema: "at timestamp, k string, m bigint", event_time: at, lateness: 1s}
queries:
  pairs:
    sql: SELECT l.ts, l.n, r.m FROM calls l LEFT JOIN taps r ON l.k = r.k AND r.at BETWEEN l.ts - INTERVAL 6 SECONDS AND l.ts + INTERVAL 3 SECONDS
    join: {spread: 3, groups: 7}
"""  # noqa: E501
KEYS = (*"abcdefgh", None)
STEPS = ("claimed", "taken", "joined", "gathered", "composed", "committed", "delivered")
BATCHES = 12


class PlainJob:
    """A join's rounds in this process, by what Spark's tasks call: as quick as the kernel is."""

    group_rows: tuple[int, ...] = ()

    def __init__(
        self, session: object, plan: JoinPlan, left: Channel, right: Channel, runs: Path
    ) -> None:
        self._schema = arrow_schema(plan.output.schema)
        self._place = JoinPlace(plan, left.folder, right.folder, runs)

    def run(self, step: JoinStep) -> pa.Table:
        return pa.concat_tables([self._schema.empty_table(), *join_rows(self._place, step)])

    def close(self) -> None:
        return None


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Stands for a session where nothing of what is tested is Spark's."""
    monkeypatch.setattr(join_rounds, "JoinJob", PlainJob)
    context = SimpleNamespace(defaultParallelism=2)
    return cast(SparkSession, SimpleNamespace(sparkContext=context))


class Died(BaseException):
    """Stands for the end of a process: whatever it had in memory is gone."""


class Place:
    """A process with a bundle; dies where it is told to and is followed by another."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.lives = count()
        self.fragments: dict[str, Fragment] = {}
        self.begin()

    def begin(self) -> None:
        state, life = self.world.state, f"{self.name}_{next(self.lives)}"
        self.runs: dict[str, LightRun] = {}
        messengers = Messengers(state.bundles / life)
        self.bundle = Bundle(
            self.world.session,
            state.bundles,
            life,
            lambda name: state.fragment(name).claims,
            state.channel,
            lambda name: state.fragment(name).runs,
            lambda whole: state.fragment(whole).groups,
            deliver=lambda given: messengers.deliver(self.runs, given),
            on_step=lambda step: self.world.on_step(self, step),
        )

    def add(self, fragment: Fragment, is_back: bool = False) -> None:
        """Takes a fragment over from whoever has it, or goes on with what its place had."""
        self.fragments[fragment.name] = fragment
        epoch = self.world.epoch(fragment.name, is_back)
        folder: FragmentFolder = self.world.state.fragment(fragment.name)
        folder.claim(epoch)
        writer = Writer(self.world.state.channel(fragment.channel), epoch)
        sink = ChannelSink(writer, None, ("ts",), may_go_back=fragment.part is not None)
        plan = plan_fragment(fragment)
        run = LightRun(fragment, plan, epoch, folder, [sink], writer, 1_000)  # type: ignore[arg-type]
        self.runs[fragment.name] = run
        self.bundle.add(plan, epoch)  # type: ignore[arg-type]

    def hand(self, name: str, target: Place) -> None:
        """Lets another place go on with a fragment."""
        if name in self.bundle.members:
            self.bundle.release(name)
            self.bundle.settle()
        target.add(self.fragments.pop(name))

    def work(self) -> None:
        """A round; one who dies is followed by another, who takes everything over."""
        try:
            self.bundle.round()
            self.bundle.advance()
            assert not self.bundle.failed, self.bundle.failed
        except Died:
            self.come_back()

    def come_back(self) -> None:
        while True:
            self.begin()
            try:
                for fragment in tuple(self.fragments.values()):
                    if not self.world.state.fragment(fragment.name).is_finished:
                        self.add(fragment, is_back=next(self.world.turns) % 2 == 0)
                return
            except Died:
                continue


class World:
    """Three places with a part each, one of which gathers, and two feeds."""

    def __init__(self, session: SparkSession, folder: Path, batches: int = BATCHES) -> None:
        self.session = session
        self.state = StateFolder(folder)
        self.state.prepare()
        network = parse_deployment(DEPLOYMENT, "d.yaml", Path()).network
        (fused,) = fuse(network)
        *self.parts, self.whole = spread_fragment(network, fused, {})
        for fragment in (*self.parts, self.whole):
            for stream in fragment.inputs:
                self.state.channel(stream).register(fragment.name)
        self.calls = Feed(self.state.channel("calls").folder, ("ts", "k", "n"), 1, batches, KEYS)
        self.taps = Feed(self.state.channel("taps").folder, ("at", "k", "m"), 2, batches, KEYS)
        self.state.channel("pairs").register("test")
        self.groups = GroupFiles(self.state.fragment("pairs").groups)
        self.spread = self.parts[0].part.spread  # type: ignore[union-attr]
        self._epochs: Counter[str] = Counter()
        self.turns = count()
        self.on_step: Callable[[Place, str], None] = lambda place, step: None
        self.places = [Place(self, name) for name in "abc"]
        for place, part in zip(self.places, self.parts, strict=True):
            place.add(part)
        self.places[0].add(self.whole)

    def epoch(self, name: str, is_back: bool) -> int:
        """The next epoch; the same one for a node that is back before its lease has ended."""
        if not is_back:
            self._epochs[name] += 1
        return self._epochs[name]

    @property
    def owners(self) -> GroupTable:
        return self.groups.owners(self.spread)

    def move(self, groups: set[int], part: int) -> bool:
        """Asks for a move; whether it could be begun."""
        try:
            return self.groups.propose(self.owners.moved(groups, part))
        except InputError:
            return False

    def give(self) -> None:
        self.calls.give()
        self.taps.give()

    def work(self) -> None:
        for place in self.places:
            place.work()

    def finish(self) -> None:
        """Rounds until everything is out."""
        for _ in range(60):
            self.give()
            self.work()
            if self.state.fragment("pairs").is_finished:
                return
        raise AssertionError(f"it does not end: {self.owners}")

    def check(self) -> None:
        """Every pair came once, and none after the time that was told before."""
        found: Counter = Counter()
        channel, told_us = self.state.channel("pairs"), None
        for manifest in channel.newer(0):
            for file in manifest.files:
                rows = channel.rows_of(file, ["ts", "n", "m"]).to_pylist()
                found.update((row["n"], row["m"]) for row in rows)
                times = [1e6 * row["ts"].timestamp() for row in rows]
                assert told_us is None or min(times) >= told_us
            if manifest.watermark_us is not None:
                told_us = max(manifest.watermark_us, told_us or manifest.watermark_us)
        assert found == self.expected()

    def expected(self) -> Counter:
        found: Counter = Counter()
        for at_us, key, number in self.calls.rows:
            partners = [
                other
                for tap_us, tap_key, other in self.taps.rows
                if key is not None
                and key == tap_key
                and -6 * SECOND_US <= tap_us - at_us <= 3 * SECOND_US
            ]
            found.update((number, partner) for partner in partners or [None])
        return found


def test_parts_give_together_what_one_would(session: SparkSession, tmp_path: Path) -> None:
    world = World(session, tmp_path)
    world.finish()
    world.check()
    lasts = [world.state.channel(part.channel).last() for part in world.parts]
    assert all(last is not None and last.sequence > 3 for last in lasts)
    assert sorted(world.owners.closed) == [1, 2, 3]


def test_groups_move_in_mid_stream(session: SparkSession, tmp_path: Path) -> None:
    world, random, moves = World(session, tmp_path), Random(5), 0
    for _ in range(BATCHES - 1):
        world.give()
        groups = set(random.sample(range(7), random.choice([1, 1, 3])))
        moves += world.move(groups, random.choice([1, 2, 3]))
        # Some are quicker than others.
        for place in random.choices(world.places, k=3):
            place.work()
    world.finish()
    assert moves > 4
    assert not world.owners.moving
    assert world.owners.pauses, "the pauses of moves are known"
    world.check()


@pytest.mark.parametrize("step", STEPS)
def test_whoever_dies_while_groups_move_every_pair_comes_once(
    plain: SparkSession, tmp_path: Path, step: str
) -> None:
    world, random = World(plain, tmp_path), Random(step)
    deaths: list[bool] = []

    def die(place: Place, name: str) -> None:
        if name == step and len(deaths) < 8 and random.random() < 0.4:
            deaths.append(bool(world.owners.moving))
            raise Died

    world.on_step = die
    for _ in range(BATCHES - 1):
        world.give()
        world.move({random.randrange(7)}, random.choice([1, 2, 3]))
        if step in ("claimed", "taken"):
            random.choice(world.places).come_back()
        world.work()
    world.finish()
    assert len(deaths) >= 3, "the fault must have struck"
    assert any(deaths), "a group must have been on its way when it struck"
    world.check()


def test_parts_move_as_a_whole_while_groups_move(plain: SparkSession, tmp_path: Path) -> None:
    world, random, moves = World(plain, tmp_path), Random(7), 0
    for _ in range(BATCHES - 1):
        world.give()
        world.move({random.randrange(7)}, random.choice([1, 2, 3]))
        source = random.choice([place for place in world.places if place.fragments])
        target = random.choice([place for place in world.places if place is not source])
        name = random.choice(list(source.fragments))
        source.hand(name, target)
        moves += 1
        world.work()
    world.finish()
    assert moves == BATCHES - 1
    world.check()


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_which_some_are_slow(plain: SparkSession, tmp_path: Path, seed: int) -> None:
    world, random, moves = World(plain, tmp_path, batches=40), Random(seed), 0
    for number in range(39):
        world.give()
        moves += world.move({random.randrange(7)}, random.choice([1, 2, 3]))
        # Each works now and then; then it has many batches to read, and is far behind in others.
        for place, pace in zip(world.places, random.sample([1, 3, 7], 3), strict=True):
            if number % pace == 0:
                place.work()
    world.finish()
    assert moves > 10
    world.check()


def test_a_part_without_groups_follows(plain: SparkSession, tmp_path: Path) -> None:
    world = World(plain, tmp_path)
    assert world.move(set(world.owners.groups_of(2)), 1)
    for _ in range(6):
        world.give()
        world.work()
    assert world.owners.groups_of(2) == frozenset()
    assert not world.owners.moving
    world.finish()
    world.check()


def test_a_part_takes_groups_before_its_next_round(plain: SparkSession, tmp_path: Path) -> None:
    world = World(plain, tmp_path)
    for _ in range(3):
        world.give()
        world.work()
    source, target = world.places[0].bundle, world.places[1].bundle
    group = min(world.owners.groups_of(1))
    world.give()
    assert world.move({group}, 2)
    assert not target.has_receivers, "the owner has not given it yet"
    source.round()
    assert target.has_receivers and not source.has_receivers
    target.receive()
    place = target.members["pairs_part2"].part
    assert place is not None and group in place.groups
    assert not target.has_receivers
    world.finish()
    world.check()


def test_groups_come_between_two_rounds(plain: SparkSession, tmp_path: Path) -> None:
    """The part's next round is a minute away; the group does not wait for it."""
    world = World(plain, tmp_path)
    world.give()
    world.work()
    source, place = world.places[0].bundle, world.places[1]
    fragment = place.fragments.pop("pairs_part2")
    place.bundle.release(fragment.name)
    place.bundle.settle()
    light, epoch = LightFragments(plain, world.state, 1_000), world.epoch(fragment.name, False)
    world.state.fragment(fragment.name).claim(epoch)
    writer = Writer(world.state.channel(fragment.channel), epoch)
    sink, plan = ChannelSink(writer, None, ("ts",), may_go_back=True), plan_fragment(fragment)
    light.start(fragment, plan, epoch, [sink], writer, 60_000_000, {})  # type: ignore[arg-type]
    try:
        group = min(world.owners.groups_of(1))
        assert world.move({group}, 2)
        world.give()
        source.round()
        until(lambda: group in _groups(light), 10, lambda: _groups(light))
    finally:
        light.stop()
    place.add(fragment)
    world.finish()
    world.check()


def _groups(light: LightFragments) -> frozenset[int]:
    running = light._bundle.members.get("pairs_part2")
    return frozenset() if running is None or running.part is None else running.part.groups
