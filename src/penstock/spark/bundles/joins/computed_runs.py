"""Runs of a side of which Spark computes what is kept: expressions that Arrow does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.manifest import Manifest
from penstock.kernels.join_plan import JoinPlan, PlannedSide
from penstock.kernels.window_join.window import SideWindow
from penstock.model.expressions import Expression, columns_of, to_sql, type_of
from penstock.model.schema import Schema
from penstock.spark.bundles.joins.channel_batches import ChannelBatches
from penstock.spark.bundles.joins.join_task import open_cache
from penstock.spark.calendar import in_calendar
from penstock.spark.ddl import spark_ddl
from penstock.spark.sources.channel_reader import check_file

_COMPUTED, _FILE = "__computed_", "__file"


@dataclass(frozen=True)
class _Making:
    """What a task needs to know to make runs of a side; ``numbers`` are batches by their files."""

    plan: JoinPlan
    side: PlannedSide
    channel: Path
    runs: Path
    numbers: Mapping[str, int]

    @property
    def computed(self) -> dict[Expression, str]:
        """The columns that Spark computes."""
        found = dict.fromkeys(self.side.left_to_spark)
        return {expression: f"{_COMPUTED}{at}" for at, expression in enumerate(found)}


def make_runs(
    session: SparkSession,
    plan: JoinPlan,
    side: PlannedSide,
    channel: Channel,
    runs: Path,
    manifests: Sequence[Manifest],
) -> None:
    """Makes the runs of some batches by one Spark job."""
    numbers, paths = {}, []
    for manifest in manifests:
        for file in manifest.files:
            if file.rows:
                paths.append(str(check_file(channel, file)))
                numbers[file.name] = manifest.sequence
    making = _Making(plan, side, channel.folder, runs, numbers)
    empty = [batch.sequence for batch in manifests if batch.sequence not in numbers.values()]
    for number in empty:
        _window(making).add(number, side.arrow_schema.empty_table())
    if not paths:
        return
    rows = session.read.schema(spark_ddl(_read_schema(side))).parquet(*paths)
    rows.selectExpr(*_projection(making), f"_metadata.file_name AS {_FILE}").coalesce(1).mapInArrow(
        _make(making), "made int"
    ).collect()


def _read_schema(side: PlannedSide) -> Schema:
    needed = {name.lower() for value in side.expressions for name in columns_of(value)}
    return Schema(tuple(field for field in side.schema if field.name.lower() in needed))


def _projection(making: _Making) -> list[str]:
    schema = making.side.schema
    given = [f"`{field.name}`" for field in _read_schema(making.side)]
    for expression, name in making.computed.items():
        value = in_calendar(to_sql(expression, schema), type_of(expression, schema))
        given.append(f"{value} AS `{name}`")
    return given


def _window(making: _Making) -> SideWindow:
    batches = ChannelBatches(Channel(making.channel), making.side)
    is_left = making.side == making.plan.left
    terms = making.plan.terms
    layout = terms.layout(terms.left if is_left else terms.right)
    return SideWindow(batches, layout, open_cache(making.runs))


def _make(making: _Making) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = list(batches)
        if not given:
            return
        rows, window = pa.Table.from_batches(given), _window(making)
        names = list(making.numbers)
        numbers = pc.index_in(rows.column(_FILE), pa.array(names))
        batch_of = pc.take(pa.array([making.numbers[name] for name in names]), numbers)
        for number in sorted(set(making.numbers.values())):
            own = rows.filter(pc.equal(batch_of, number))
            window.add(number, making.side.project(own, making.computed))
        yield pa.RecordBatch.from_arrays([pa.array([len(names)], pa.int32())], names=["made"])

    return make
