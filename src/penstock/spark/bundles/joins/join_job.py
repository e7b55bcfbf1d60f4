"""The Spark jobs of a round of one join."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa
from pyspark import Broadcast, TaskContext
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.join_plan import JoinPlan
from penstock.kernels.window_join import RunCache
from penstock.kernels.window_join.window import SideWindow
from penstock.model.schema import Schema
from penstock.spark.bundles.joins.channel_batches import ChannelBatches
from penstock.spark.bundles.joins.computed_runs import make_runs
from penstock.spark.bundles.joins.join_task import (
    ROWS,
    JoinedRound,
    JoinPlace,
    JoinStep,
    RunMissing,
    answer_join,
    join_rows,
    take_rows,
)
from penstock.spark.compile import compile_operator
from penstock.spark.ddl import spark_ddl

_STEP = "penstock.join.step"

log = logging.getLogger(__name__)


class JoinJob:
    """Runs the rounds of a join; what tasks need to know of it travels once."""

    def __init__(
        self, session: SparkSession, plan: JoinPlan, left: Channel, right: Channel, runs: Path
    ) -> None:
        self._session = session
        self._plan = plan
        self._channels = (left, right)
        self._runs = runs
        place = JoinPlace(plan, left.folder, right.folder, runs)
        self.group_rows: tuple[int, ...] = ()
        """How many rows of each partition group have been new so far, where those matter."""
        self._place: Broadcast[JoinPlace] = session.sparkContext.broadcast(place)
        self._answers = session.sparkContext.parallelize([None], 1).map(_answering(self._place))
        for left_behind in runs.glob(f"{ROWS}*"):
            left_behind.unlink(missing_ok=True)

    def run(self, step: JoinStep) -> pa.Table:
        """The rows of a round."""
        self._make_runs(step, only_new=True)
        try:
            return self._rows(step)
        except Exception as error:
            if RunMissing.__name__ not in str(error):
                raise
            # A run that Spark made was lost or damaged.
            self._make_runs(step, only_new=False)
            return self._rows(step)

    def _rows(self, step: JoinStep) -> pa.Table:
        return self._finish(step) if self._plan.is_finished_by_spark else self._whole(step)

    def _whole(self, step: JoinStep) -> pa.Table:
        self._session.sparkContext.setLocalProperty(_STEP, step.text)
        (answer,) = self._answers.collect()
        for path in answer.damaged:
            log.warning("the run %s was damaged and has been made again", path)
        pairs = zip_longest(self.group_rows, answer.group_rows, fillvalue=0)
        self.group_rows = tuple(before + new for before, new in pairs)
        if answer.rows is None:
            return arrow_schema(self._plan.output.schema).empty_table()
        return take_rows(answer.rows)

    def _finish(self, step: JoinStep) -> pa.Table:
        """Rows that Spark filters and maps once they are joined."""
        terms = self._plan.terms
        joined = Schema(tuple(self._plan.joined[name] for name in terms.schema.names))
        rows = self._session.range(0, 1, 1, 1).mapInArrow(
            _joining(self._place, step), spark_ddl(joined)
        )
        for operator in self._plan.after:
            (stream,) = {input.stream for input in operator.inputs}
            (rows,) = compile_operator(self._session, operator, {stream: rows}, {}).values()
        wanted = arrow_schema(self._plan.output.schema)
        return rows.select(*(f"`{name}`" for name in wanted.names)).toArrow().cast(wanted)

    def _make_runs(self, step: JoinStep, only_new: bool) -> None:
        plan, terms = self._plan, self._plan.terms
        befores = (step.before.left, step.before.right)
        afters = (step.after.left, step.after.right)
        sides = zip(plan.sides, (terms.left, terms.right), self._channels, strict=True)
        for (side, joined, channel), before, after in zip(sides, befores, afters, strict=True):
            if not side.left_to_spark:
                continue
            first = before.stop if only_new else before.first
            batches = ChannelBatches(channel, side)
            window = SideWindow(batches, terms.layout(joined), RunCache(self._runs))
            lacking = sorted(
                {
                    *window.missing(first, before.stop),
                    *window.missing(before.stop, after.stop, is_exact=True),
                }
            )
            if lacking:
                manifests = [batches.manifest(number) for number in lacking]
                make_runs(self._session, plan, side, channel, self._runs, manifests)

    def close(self) -> None:
        """Lets go of what the tasks know."""
        self._place.destroy()


def _answering(place: Broadcast[JoinPlace]) -> Callable[[None], JoinedRound]:
    """What a task does; which step it is about, its job says.

    So the job is the same in every round, and Spark is told of it once.
    """

    def answer(_: None) -> JoinedRound:
        context = TaskContext.get()
        assert context is not None
        return answer_join(place.value, JoinStep.read(str(context.getLocalProperty(_STEP))))

    return answer


def _joining(
    place: Broadcast[JoinPlace], step: JoinStep
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def join(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            for rows in join_rows(place.value, step):
                yield from rows.to_batches()

    return join
