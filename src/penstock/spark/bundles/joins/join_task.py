"""What a Spark task does for a round of a join: makes runs, finds pairs, puts rows together."""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from penstock.channels.channel import Channel
from penstock.errors import RunError
from penstock.kernels.join_plan import JoinPlan, PlannedSide
from penstock.kernels.window_join import (
    JoinOffset,
    RunCache,
    join_batch,
    retire,
)
from penstock.kernels.window_join.group_counts import count_groups
from penstock.kernels.window_join.part_records import offset_record, read_offset
from penstock.spark.bundles.joins.channel_batches import ChannelBatches

_CACHES_OPEN = 64
ROWS = ".rows-"
"""How the names of files begin that hold a round's rows until they are taken."""


class RunMissing(RunError):
    """A run is missing that only Spark can make, because it computes what is kept of the rows."""


@dataclass(frozen=True)
class JoinStep:
    """A round of a join: from where to where it goes, and of which groups, if not of all.

    ``first`` are the oldest batches of both sides that later rounds may need; those of ``before``
    if nothing is said.

    >>> from penstock.kernels.window_join import SideOffset
    >>> step = JoinStep(JoinOffset(), JoinOffset(SideOffset(0, 3, 20), SideOffset(0, 1)))
    >>> JoinStep.read(step.text) == step
    True
    """

    before: JoinOffset
    after: JoinOffset
    owned: frozenset[int] | None = None
    first: tuple[int, int] | None = None

    @property
    def kept(self) -> JoinOffset:
        """How far it has come, with the batches that may still be needed in its windows."""
        if self.first is None:
            return self.before
        sides = zip((self.before.left, self.before.right), self.first, strict=True)
        left, right = (replace(side, first=min(side.first, first)) for side, first in sides)
        return JoinOffset(left, right)

    @property
    def text(self) -> str:
        """The step as text."""
        owned = None if self.owned is None else sorted(self.owned)
        return json.dumps(
            {
                "before": offset_record(self.before),
                "after": offset_record(self.after),
                "owned": owned,
                "first": self.first,
            }
        )

    @classmethod
    def read(cls, text: str) -> JoinStep:
        """The step that :attr:`text` gave."""
        read = json.loads(text)
        owned, first = read["owned"], read["first"]
        return cls(
            read_offset(read["before"]),
            read_offset(read["after"]),
            None if owned is None else frozenset(owned),
            None if first is None else tuple(first),
        )


@dataclass(frozen=True)
class JoinPlace:
    """Where a join reads and where its runs lie; the same for all its rounds."""

    plan: JoinPlan
    left: Path
    right: Path
    runs: Path

    def batches(self) -> tuple[ChannelBatches, ChannelBatches]:
        """Both sides as their channels have them."""
        return (
            _side_batches(self.left, self.plan.left),
            _side_batches(self.right, self.plan.right),
        )


class _ComputedBatches(ChannelBatches):
    """A side of which Spark computes what is kept: its runs are there, or have to be asked for."""

    def read(self, number: int) -> pa.Table:
        raise RunMissing(f"the run of batch {number} of {self.side.stream} is missing")


def _side_batches(folder: Path, side: PlannedSide) -> ChannelBatches:
    kind = _ComputedBatches if side.left_to_spark else ChannelBatches
    return kind(Channel(folder), side)


# A worker keeps the runs open that it works with: each is verified once when it is opened.
_caches: OrderedDict[Path, RunCache] = OrderedDict()


def open_cache(folder: Path) -> RunCache:
    """The runs of a join as this process has them open."""
    cache = _caches.pop(folder, None)
    if cache is None or not folder.exists():
        cache = RunCache(folder)
    _caches[folder] = cache
    while len(_caches) > _CACHES_OPEN:
        _caches.popitem(last=False)
    return cache


def join_rows(place: JoinPlace, step: JoinStep) -> Iterator[pa.Table]:
    """The rows of a round, as far as kernels compute them."""
    plan, cache = place.plan, open_cache(place.runs)
    sides = place.batches()
    # What the last round that counts has left behind; never more, as this one may not count.
    retire(plan.terms, *sides, step.kept, cache)
    for rows in join_batch(plan.terms, *sides, step.before, step.after, cache, step.owned):
        yield rows if plan.is_finished_by_spark else plan.finish(rows)
    cache.close_unused()


@dataclass(frozen=True)
class JoinedRound:
    """What a task gives back: the file with the rows, None if there are none.

    ``damaged`` are the files of runs that had to be made again, ``group_rows`` how many rows were
    new by partition group, where those matter.
    """

    rows: Path | None
    damaged: tuple[Path, ...]
    group_rows: tuple[int, ...] = ()


def answer_join(place: JoinPlace, step: JoinStep) -> JoinedRound:
    """The rows of a round, on their way out of a task.

    They go by a file that whoever asked takes away: through Spark they would be copied several
    times, and here they never lie in memory all at once.
    """
    rows = _write_rows(place.runs, join_rows(place, step))
    cache = open_cache(place.runs)
    damaged, cache.damaged = tuple(cache.damaged), []
    return JoinedRound(rows, damaged, _count(place, step, cache))


def _count(place: JoinPlace, step: JoinStep, cache: RunCache) -> tuple[int, ...]:
    if step.owned is None:
        return ()
    counts = count_groups(place.plan.terms, *place.batches(), step.before, step.after, cache)
    return tuple(int(rows) if group in step.owned else 0 for group, rows in enumerate(counts))


def _write_rows(folder: Path, tables: Iterator[pa.Table]) -> Path | None:
    path = folder / f"{ROWS}{uuid.uuid4().hex}"
    with ExitStack() as stack:
        writer: pa.RecordBatchStreamWriter | None = None
        for rows in tables:
            if not rows.num_rows:
                continue
            if writer is None:
                sink = stack.enter_context(pa.OSFile(str(path), "wb"))
                writer = stack.enter_context(pa.ipc.new_stream(sink, rows.schema))
            writer.write_table(rows.combine_chunks())
    return None if writer is None else path


def take_rows(path: Path) -> pa.Table:
    """The rows in a task's file, which goes; they stay mapped as long as somebody has them."""
    try:
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_stream(file).read_all()
    finally:
        path.unlink(missing_ok=True)
