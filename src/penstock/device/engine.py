"""The embedded engine of a device: shipped steps over rows, with windows that stay open.

DuckDB computes every expression and joins tables; the kernels that run on the server keep windows.
Nothing on a device reads a file or the network for a query.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from penstock.channels.manifest import END_OF_TIME_US
from penstock.device.steps import AT, DeviceStep, table_name
from penstock.errors import InputError
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.aggregates import kind_of
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.member_state import MemberState, open_state
from penstock.kernels.partials import compute_partials
from penstock.kernels.state_shape import StateShape
from penstock.kernels.window_plan import PlannedCall, WindowPlan
from penstock.kernels.window_results import give_results
from penstock.kernels.window_state import LONG_AGO_US, MemberTime, MemberWindows
from penstock.model.expressions import Column, type_of
from penstock.model.ids import PartId
from penstock.model.schema import Schema
from penstock.model.types import DataType
from penstock.model.windows import Window

_NOTHING = {DataType.BOOLEAN: False, DataType.STRING: "", DataType.BINARY: b""}
_PLAIN_TIME = pa.timestamp("us")
_Compute = Callable[[str, pa.Table, Schema], pa.Table]


@dataclass
class StepUse:
    """What a step has done so far: rows in and out, and seconds of processor time."""

    name: str
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0


class ShippedRun:
    """Runs shipped steps over what each cycle brings; ``tables`` are those that steps join.

    >>> step = DeviceStep("big", "filter", "SELECT * FROM rows WHERE kwh > 3", "kwh double")
    >>> run = ShippedRun([step], Schema.parse("kwh double"), {})
    >>> run.feed(pa.table({"kwh": [1.0, 4.0]}), None).to_pydict()
    {'kwh': [4.0]}
    """

    def __init__(
        self, steps: Sequence[DeviceStep], schema: Schema, tables: Mapping[str, pa.Table]
    ) -> None:
        self._duck = duckdb.connect(
            config={
                "enable_external_access": "false",
                "lock_configuration": "true",
                "threads": "1",  # A device has little to compute, and is to be measured.
            }
        )
        for step in steps:
            if step.table is not None:
                self._add_table(step, tables)
        self._schema = schema
        self.uses = [StepUse(step.name) for step in steps]
        self._steps = [
            _Windows(step, self._rows) if step.windows else _Plain(step, self._rows)
            for step in steps
        ]

    def _add_table(self, step: DeviceStep, tables: Mapping[str, pa.Table]) -> None:
        assert step.table is not None and step.table_schema is not None
        if step.table not in tables:
            raise InputError(
                f"{step.name} joins table {step.table}, which this device does not have",
                hint=f"Give it with --table {step.table}=FILE.",
            )
        rows = tables[step.table].cast(arrow_schema(Schema.parse(step.table_schema)))
        self._duck.register("given_rows", _without_zones(rows))
        name = table_name(step.table)
        self._duck.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given_rows")
        self._duck.unregister("given_rows")

    def feed(self, rows: pa.Table, watermark_us: int | None) -> pa.Table:
        """The final rows that these bring, and that windows give which the watermark closes."""
        rows = rows.select(list(self._schema.names)).cast(arrow_schema(self._schema))
        for step, use in zip(self._steps, self.uses, strict=True):
            began_s = time.process_time()
            use.rows_in += rows.num_rows
            rows = step.feed(rows, watermark_us)
            use.rows_out += rows.num_rows
            use.seconds += time.process_time() - began_s
            watermark_us = None if watermark_us is None else watermark_us - step.step.delay_us
        return rows

    def rehearse(self) -> None:
        """Has every step compute a row of nothing, so that what is loaded only once is loaded."""
        schema = self._schema
        for step in self._steps:
            step.feed(_one_row(schema), END_OF_TIME_US)
            schema = step.given

    def _rows(self, sql: str, rows: pa.Table, schema: Schema) -> pa.Table:
        wanted = arrow_schema(schema)
        if not rows.num_rows:
            return wanted.empty_table()
        self._duck.register("rows", _without_zones(rows))
        found = self._duck.sql(sql).to_arrow_table()
        self._duck.unregister("rows")
        return _with_zones(found).cast(wanted)

    def windows(self) -> dict[str, Window]:
        """The windows of every aggregate that has some of a fixed length, by its name."""
        found = {}
        for step in self._steps:
            window = step.step.windows.window if step.step.windows else None
            if isinstance(window, Window):
                found[step.step.name] = window
        return found

    def dump(self) -> dict[str, tuple[int, pa.Table | None]]:
        """What windows keep, by the name of their step: how far time has come, and their state."""
        return {
            running.step.name: running.dump()
            for running in self._steps
            if isinstance(running, _Windows)
        }

    def load(self, kept: Mapping[str, tuple[int, pa.Table | None]]) -> None:
        """Goes on with what another run of the same steps has kept."""
        for running in self._steps:
            if isinstance(running, _Windows) and running.step.name in kept:
                running.load(*kept[running.step.name])


class _Plain:
    """A step without state."""

    def __init__(self, step: DeviceStep, compute: _Compute) -> None:
        self.step = step
        self._compute = compute
        self.given = Schema.parse(step.schema)

    def feed(self, rows: pa.Table, watermark_us: int | None) -> pa.Table:
        return self._compute(self.step.sql, rows, self.given)


class _Windows:
    """An aggregate: open windows, until a watermark closes them."""

    def __init__(self, step: DeviceStep, compute: _Compute) -> None:
        assert step.windows is not None
        self.step = step
        self._compute = compute
        self._schema = Schema.parse(step.schema)
        self._plan = _plan(step, self._schema)
        self.given = self._plan.output.schema
        self._shape = StateShape.of(self._plan)
        self._state: MemberState = open_state(self._shape)
        self._reached_us = LONG_AGO_US

    def feed(self, rows: pa.Table, watermark_us: int | None) -> pa.Table:
        projected = self._compute(self.step.sql, rows, self._schema)
        if projected.num_rows:
            batch = BatchRows(projected.combine_chunks(), self._schema)
            for partials in compute_partials(batch, {0: self._plan}).values():
                self._state.add(partials)
        nothing = arrow_schema(self.given).empty_table()
        if watermark_us is None or watermark_us <= self._reached_us:
            return nothing
        times = MemberTime(self._plan.window, self._reached_us, watermark_us)
        closed = self._state.close(MemberWindows.of({0: times}, 1))
        self._reached_us = watermark_us
        given = give_results(self._shape, closed, {0: self._plan}) if closed is not None else ()
        return next((table for _, table in given), nothing)

    def dump(self) -> tuple[int, pa.Table | None]:
        return self._reached_us, self._state.dump()

    def load(self, reached_us: int, kept: pa.Table | None) -> None:
        self._reached_us = reached_us
        if kept is not None:
            self._state.add(kept)


def _plan(step: DeviceStep, schema: Schema) -> WindowPlan:
    assert step.windows is not None
    aggregate = step.windows.aggregate(step.name, schema)
    calls = []
    for name, call in aggregate.aggregates:
        kind = kind_of(call.function, [type_of(argument, schema) for argument in call.arguments])
        if kind is None:
            raise InputError(f"{step.name} has an aggregate {call.function} this device lacks")
        calls.append(PlannedCall(name, kind, call.arguments))
    return WindowPlan(
        PartId(step.name), "rows", schema, (), Column(AT), aggregate.window, aggregate.keys,
        tuple(calls), aggregate, (),
    )  # fmt: skip


def _one_row(schema: Schema) -> pa.Table:
    """A row of zeros, the first moment, and empty texts."""
    wanted = arrow_schema(schema)
    values = [_NOTHING.get(field.type, 0) for field in schema]
    columns = [pa.array([value], of.type) for value, of in zip(values, wanted, strict=True)]
    return pa.table(columns, schema=wanted)


def _without_zones(rows: pa.Table) -> pa.Table:
    columns = [
        column.cast(_PLAIN_TIME) if pa.types.is_timestamp(column.type) else column
        for column in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)


def _with_zones(rows: pa.Table) -> pa.Table:
    utc = pa.timestamp("us", tz="UTC")
    columns = [
        column.cast(utc) if pa.types.is_timestamp(column.type) else column
        for column in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)
