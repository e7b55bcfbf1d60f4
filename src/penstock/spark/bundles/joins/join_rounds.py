"""Rounds of joins: what is new on both sides, the Spark job for it, and what is still needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.group_files import GroupFiles
from penstock.channels.manifest import Manifest
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.join_plan import JoinPlan
from penstock.kernels.window_join import advance
from penstock.kernels.window_join.part_place import PartPlace
from penstock.kernels.window_state import LONG_AGO_US
from penstock.model.ids import FragmentId, PartId, reader_for
from penstock.spark.bundles.joins.channel_batches import ChannelBatches
from penstock.spark.bundles.joins.join_job import JoinJob
from penstock.spark.bundles.joins.join_task import JoinStep
from penstock.spark.bundles.joins.part_rounds import PartRounds
from penstock.spark.bundles.round_reading import OnStep, RoundWork
from penstock.spark.bundles.running import InputPosition, Running, join_offset
from penstock.spark.sources.channel_reader import check_file


@dataclass
class _OpenJoin:
    """A join at work here: its job, and what is known of the batches in its windows.

    ``part`` is what it does as a part of a join, and ``kept`` what it has had its channels keep for
    it. ``taken`` are the batches of both sides that the round under way reads.
    """

    plan: JoinPlan
    job: JoinJob
    sides: tuple[ChannelBatches, ChannelBatches]
    part: PartRounds | None = None
    kept: Mapping[str, int] = field(default_factory=dict)
    taken: tuple[list[Manifest], list[Manifest]] = field(default_factory=lambda: ([], []))

    def is_due(self, step: JoinStep) -> bool:
        """Whether anything can come of a round: pairs, or left rows that are given up."""
        ends = ((step.before.left, step.after.left), (step.before.right, step.after.right))
        for batches, (before, after) in zip(self.sides, ends, strict=True):
            if batches.rows(before.stop, after.stop):
                return True
        return self.plan.kind == "left" and step.before.right != step.after.right


@dataclass(frozen=True)
class _Joined:
    """What a round of a join has come to: its rows, if there are any, and how far it is.

    With ``is_told`` its readers are told how far that is in any case.
    """

    rows: pa.Table | None
    inputs: tuple[InputPosition, ...]
    part: PartPlace | None
    is_told: bool
    spent_ms: float


class JoinRounds:
    """Computes the rounds of joins, several at once if there are several.

    The window of a join lies in the channels. ``runs_of`` says where the sorted runs of a member
    lie, which are made again when they are lost, ``groups_of`` where the parts of a join say who
    owns what.
    """

    def __init__(
        self,
        session: SparkSession,
        channel_of: Callable[[str], Channel],
        runs_of: Callable[[PartId], Path],
        groups_of: Callable[[FragmentId], Path],
        max_rows: int,
        on_step: OnStep,
    ) -> None:
        self._groups_of = groups_of
        self._session = session
        self._channel_of = channel_of
        self._runs_of = runs_of
        self._max_rows = max_rows
        self._on_step = on_step
        self._open: dict[int, _OpenJoin] = {}
        cores = session.sparkContext.defaultParallelism
        self._pool = ThreadPoolExecutor(cores, thread_name_prefix="join")

    def read(self, work: RoundWork, numbers: Iterable[int]) -> dict[int, BaseException]:
        """Adds what joins give by the round to the work; what went wrong, by member."""
        chosen = list(numbers)
        if not chosen:
            return {}
        failed: dict[int, BaseException] = {}
        attempts = [(number, work.reached[number]) for number in chosen]
        run = map if len(attempts) == 1 else self._pool.map
        for number, found in zip(chosen, run(self._attempt, attempts), strict=True):
            if isinstance(found, BaseException):
                failed[number] = found
            elif found is not None:
                self._take(work, number, found)
        self._on_step("joined")
        return failed

    def _take(self, work: RoundWork, number: int, found: _Joined) -> None:
        taken = self._open[number].taken
        rows = sum(manifest.rows for side in taken for manifest in side)
        reached = work.reached[number].reach(found.inputs, rows)
        work.reached[number] = replace(reached, part=found.part)
        work.job_ms[number] += found.spent_ms
        for side in taken:
            work.note(side)
        if found.rows is not None and (found.rows.num_rows or found.is_told):
            work.given[number] = found.rows

    def _attempt(self, member: tuple[int, Running]) -> _Joined | BaseException | None:
        try:
            return self._round(*member)
        except Exception as error:
            self._tell_again(member[0])
            return error

    def tell_again(self) -> None:
        """Tells readers of parts once more how far those are: they may not have heard."""
        for number in self._open:
            self._tell_again(number)

    def _tell_again(self, number: int) -> None:
        join = self._open.get(number)
        if join is not None and join.part is not None:
            join.part.tell_again()

    def _round(self, number: int, running: Running) -> _Joined | None:
        """One round of a join; None if there is nothing new for it."""
        began_s = time.perf_counter()
        join = self._opened(number, running)
        join.taken = self._new_batches(join, running)
        reached = tuple(
            replace(position.after(manifests), first=position.first)
            for position, manifests in zip(running.inputs, join.taken, strict=True)
        )
        for batches, position in zip(join.sides, running.inputs, strict=True):
            batches.forget(position.first)
        if join.part is not None:
            return self._part_round(join, join.part, running, reached, began_s)
        if not any(join.taken):
            return None
        step = JoinStep(join_offset(running.inputs), join_offset(reached))
        rows = join.job.run(step) if join.is_due(step) else None
        moved = advance(join.plan.terms, *join.sides, step.before, step.after)
        inputs = _keeping(reached, (moved.left.first, moved.right.first))
        return _Joined(rows, inputs, None, False, 1_000 * (time.perf_counter() - began_s))

    def _part_round(
        self,
        join: _OpenJoin,
        rounds: PartRounds,
        running: Running,
        reached: tuple[InputPosition, ...],
        began_s: float,
    ) -> _Joined | None:
        """A round of a part; groups that are behind the others join what they have not yet."""
        assert running.part is not None
        is_first = rounds.must_tell
        if running.needs() != join.kept:
            # First: whoever gave a group keeps what it needs until it is said to have come.
            join.kept = running.needs()
            for channel, needed in join.kept.items():
                self._channel_of(channel).keep_window(reader_for(running.member.name), needed)
        place, target = rounds.begin(running.part), join_offset(reached)
        first, moved, tables = place.needs(), [], []
        for part_step in place.cohorts.steps(target):
            cohort = part_step.cohort
            step = JoinStep(cohort.offset, part_step.after, cohort.groups, first)
            if join.is_due(step):
                tables.append(join.job.run(step))
            moved.append((cohort, advance(join.plan.terms, *join.sides, step.before, step.after)))
        is_over = all(position.ended for position in reached)
        place = rounds.end(place.reach(moved), target, is_over)
        if not any(join.taken) and place == running.part and not is_first:
            return None
        needs = place.needs()
        inputs = _keeping(
            reached,
            tuple(input_position.next for input_position in reached) if needs is None else needs,
        )
        nothing = arrow_schema(join.plan.output.schema).empty_table()
        rows = pa.concat_tables(tables) if tables else nothing
        spent_ms = 1_000 * (time.perf_counter() - began_s)
        return _Joined(rows, inputs, place, is_first, spent_ms)

    @property
    def has_parts(self) -> bool:
        """Whether some of the joins at work here are parts."""
        return any(join.part is not None for join in tuple(self._open.values()))

    def receivers(self, members: Mapping[int, Running]) -> list[int]:
        """The parts to which groups have been given that they have not taken yet."""
        return [
            number
            for number, join in self._open.items()
            if join.part is not None
            and number in members
            and (place := members[number].part) is not None
            and join.part.must_take(place)
        ]

    def publish(self, members: Mapping[int, Running]) -> None:
        """Lets other parts have what parts here have given by rounds that are committed."""
        for number, join in list(self._open.items()):
            running = members.get(number)
            if join.part is not None and running is not None and running.part is not None:
                join.part.publish(running.part)

    def _opened(self, number: int, running: Running) -> _OpenJoin:
        if number not in self._open:
            plan = running.plan
            assert isinstance(plan, JoinPlan)
            left, right = (self._channel_of(stream) for stream in plan.streams)
            runs = self._runs_of(plan.name)
            job = JoinJob(self._session, plan, left, right, runs)
            sides = ChannelBatches(left, plan.left), ChannelBatches(right, plan.right)
            part = plan.part
            rounds = None
            if part is not None:
                rounds = PartRounds(part, GroupFiles(self._groups_of(part.whole)))
            self._open[number] = _OpenJoin(plan, job, sides, rounds)
        return self._open[number]

    def _new_batches(
        self, join: _OpenJoin, running: Running
    ) -> tuple[list[Manifest], list[Manifest]]:
        """What to read of both sides, the side first whose time is behind.

        So neither gets ahead of the other by more than it has to: what is ahead must be kept.
        """
        coming = [
            _Coming(position, self._channel_of(position.channel)) for position in running.inputs
        ]
        rows = 0
        while True:
            waiting = [side for side in coming if side.following is not None]
            if not waiting:
                break
            behind = min(waiting, key=lambda side: side.watermark_us)
            assert behind.following is not None
            rows += behind.following.rows
            if rows > self._max_rows and any(side.taken for side in coming):
                break
            self._check(behind)
            behind.take()
        for side, batches in zip(coming, join.sides, strict=True):
            for manifest in side.taken:
                batches.note(manifest)
        return coming[0].taken, coming[1].taken

    def _check(self, side: _Coming) -> None:
        assert side.following is not None
        for file in side.following.files:
            if file.rows and file.inside is None:
                check_file(side.channel, file)

    def window_rows(self, members: Mapping[int, Running]) -> dict[PartId, int]:
        """How many rows lie in the windows of each join."""
        found = {}
        for number, join in list(self._open.items()):
            running = members.get(number)
            if running is None:
                self._open.pop(number).job.close()
                continue
            pairs = zip(join.sides, running.inputs, strict=True)
            found[running.member.name] = sum(
                batches.rows(position.first, position.next) for batches, position in pairs
            )
        return found

    def group_rows(self) -> dict[PartId, tuple[int, ...]]:
        """How many rows of each group have been new to each part so far."""
        return {
            join.plan.name: join.job.group_rows
            for join in list(self._open.values())
            if join.part is not None
        }

    def close(self) -> None:
        """Lets go of what the tasks know."""
        self._pool.shutdown()
        for join in self._open.values():
            join.job.close()
        self._open.clear()


class _Coming:
    """The batches of one side that are there and not read, one after the other."""

    def __init__(self, position: InputPosition, channel: Channel) -> None:
        self.channel = channel
        self.watermark_us = position.watermark_us
        self.taken: list[Manifest] = []
        self._newer: Iterator[Manifest] = iter(())
        if not position.ended:
            self._newer = channel.newer(position.next)
        self.following = next(self._newer, None)

    def take(self) -> None:
        """Takes the next batch."""
        assert self.following is not None
        self.taken.append(self.following)
        self.watermark_us = max(self.watermark_us, self.following.watermark_us or LONG_AGO_US)
        self.following = next(self._newer, None)


def _keeping(
    reached: tuple[InputPosition, ...], firsts: tuple[int, ...]
) -> tuple[InputPosition, ...]:
    """The positions, from which on batches are still needed."""
    pairs = zip(reached, firsts, strict=True)
    return tuple(replace(position, first=min(first, position.next)) for position, first in pairs)
