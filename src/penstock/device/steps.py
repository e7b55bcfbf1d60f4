"""What is shipped of a query: one step an operator, as plain values that can be sent.

A step is SQL for DuckDB over the table ``rows``. That of an aggregate gives event times, keys and
arguments, from which the same kernels make windows as on the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.device.duck_expressions import NotExact, duck_sql, in_calendar, quoted
from penstock.device.duck_functions import DUCK_TYPES
from penstock.kernels.aggregates import kind_of
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Column, Expression, type_of
from penstock.model.operators import Aggregate, Filter, Input, Map, TableJoin
from penstock.model.schema import Field, Schema, Shape
from penstock.model.types import DataType, common_type
from penstock.model.windows import AnyWindow, SessionWindow, Window

AT = "event_time"
_TIMES = (DataType.TIMESTAMP, DataType.DATE)


@dataclass(frozen=True)
class DeviceStep:
    """An operator as a device runs it.

    ``schema`` is that of what ``sql`` gives, ``table`` what it joins with, ``delay_us`` how far the
    watermark stays behind. ``windows`` is set for an aggregate.
    """

    name: str
    kind: str
    sql: str
    schema: str
    delay_us: int = 0
    table: str | None = None
    table_schema: str | None = None
    windows: WindowStep | None = None

    def to_record(self) -> dict[str, Any]:
        """The step as plain values; :meth:`from_record` reads it back."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> DeviceStep:
        """The step that :meth:`to_record` gave."""
        windows = record["windows"]
        return cls(**{**record, "windows": None if windows is None else WindowStep(**windows)})


@dataclass(frozen=True)
class WindowStep:
    """Windows or sessions: their length, the names of keys, and what is computed of each group."""

    size_us: int
    slide_us: int
    is_session: bool
    keys: list[str]
    calls: list[list[Any]]

    @property
    def window(self) -> AnyWindow:
        if self.is_session:
            return SessionWindow(self.size_us)
        return Window(self.size_us, self.slide_us)

    def aggregate(self, name: str, schema: Schema) -> Aggregate:
        """The aggregate over the rows that the step's SQL gives."""
        return Aggregate(
            name,
            Input("rows", Shape.timed(schema, AT)),
            self.window,
            tuple((key, Column(f"key_{at}")) for at, key in enumerate(self.keys)),
            tuple(
                (given, AggregateCall(function, _arguments(at, count)))
                for at, (given, function, count) in enumerate(self.calls)
            ),
        )


def _arguments(call: int, count: int) -> tuple[Column, ...]:
    return tuple(Column(f"arg_{call}_{at}") for at in range(count))


def step_of(operator: Filter | Map | Aggregate | TableJoin) -> DeviceStep:
    """The operator as a step; raises where a device would give something else than the server."""
    match operator:
        case Filter(input=input, predicate=predicate):
            sql = f"SELECT * FROM rows WHERE {_boolean(predicate, input.schema)}"
            return DeviceStep(operator.name, "filter", sql, str(operator.output.schema))
        case Map(input=input, columns=columns):
            given = operator.output.schema
            texts = [_column(column, given[name], input.schema) for name, column in columns]
            sql = f"SELECT {', '.join(texts)} FROM rows"
            return DeviceStep(operator.name, "map", sql, str(given), operator.delay_us)
        case TableJoin():
            return _join(operator)
        case Aggregate():
            return _aggregate(operator)


def table_name(table: str) -> str:
    """What a device's engine calls a table: nothing else is called so."""
    return quoted(f"table {table}")


def _boolean(condition: Expression, schema: Schema) -> str:
    text = duck_sql(condition, schema)
    return f"CAST({text} AS BOOLEAN)" if type_of(condition, schema) is DataType.NULL else text


def _column(expression: Expression, field: Field, schema: Schema) -> str:
    text = duck_sql(expression, schema)
    if not isinstance(expression, Column):
        text = in_calendar(f"CAST({text} AS {DUCK_TYPES[field.type]})", field.type)
    return f"{text} AS {quoted(field.name)}"


def _join(operator: TableJoin) -> DeviceStep:
    stream, table = operator.input.schema, operator.table.schema
    met = []
    for left, right in operator.equal:
        both = common_type(stream[left].type, table[right].type)
        assert both is not None
        sides = (
            f"CAST({side}.{quoted(field.name)} AS {DUCK_TYPES[both]})"
            for side, field in (("r", stream[left]), ("t", table[right]))
        )
        met.append(" = ".join(sides))
    added = (
        f"t.{quoted(table[column].name)} AS {quoted(given)}" for given, column in operator.columns
    )
    columns = [*(f"r.{quoted(field.name)}" for field in stream), *added]
    kind = "LEFT JOIN" if operator.join == "left" else "JOIN"
    name = operator.table.name
    joined = f"rows r {kind} {table_name(name)} t ON {' AND '.join(met)}"
    sql = f"SELECT {', '.join(columns)} FROM {joined}"
    schema = str(operator.output.schema)
    return DeviceStep(operator.name, "table_join", sql, schema, 0, name, str(table))


def _aggregate(operator: Aggregate) -> DeviceStep:
    schema, event_time = operator.input.schema, operator.input.shape.event_time
    assert event_time is not None
    fields = [Field(AT, DataType.TIMESTAMP)]
    texts = [f"{quoted(schema[event_time].name)} AS {AT}"]
    for at, (name, key) in enumerate(operator.keys):
        fields.append(Field(f"key_{at}", operator.output.schema[name].type))
        texts.append(_column(key, fields[-1], schema))
    calls = []
    for at, (name, call) in enumerate(operator.aggregates):
        for nth, argument in enumerate(call.arguments):
            fields.append(Field(f"arg_{at}_{nth}", _argument_type(argument, schema)))
            texts.append(_column(argument, fields[-1], schema))
        if (
            kind_of(call.function, [type_of(argument, schema) for argument in call.arguments])
            is None
        ):
            raise NotExact(f"devices cannot compute {call.sql()}", hint="Leave it to the server.")
        calls.append([name, call.function, len(call.arguments)])
    window = operator.window
    is_session = isinstance(window, SessionWindow)
    size_us = window.gap_us if isinstance(window, SessionWindow) else window.size_us
    slide_us = size_us if isinstance(window, SessionWindow) else window.slide_us
    shipped = WindowStep(size_us, slide_us, is_session, [name for name, _ in operator.keys], calls)
    sql = f"SELECT {', '.join(texts)} FROM rows"
    return DeviceStep(operator.name, "aggregate", sql, str(Schema(tuple(fields))), windows=shipped)


def _argument_type(argument: Expression, schema: Schema) -> DataType:
    found = type_of(argument, schema)
    if not isinstance(argument, Column) and found in _TIMES:
        raise NotExact(
            "devices cannot keep computed times within the calendar before they are aggregated",
            hint="Leave it to the server, or aggregate a column.",
        )
    if not found.is_storable:
        raise NotExact(f"devices cannot aggregate a {found}", hint="Cast it to another type.")
    return found
