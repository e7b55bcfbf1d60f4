"""Filters and maps as expressions over the rows that they are given, and what of them counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from penstock.kernels.expressions import can_evaluate
from penstock.model.beginnings import Moments
from penstock.model.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    conjuncts,
    to_sql,
    transform,
    type_of,
)
from penstock.model.operators import Filter, Input, Map, Operator
from penstock.model.schema import Schema, Shape
from penstock.model.types import DataType

Columns = Mapping[str, Expression]
_TIMES = (DataType.TIMESTAMP, DataType.DATE)


_ROWS = "rows"


def after_moments(shape: Shape, moments: Moments) -> Iterator[Filter]:
    """Filters for the rows that lie after these times."""
    for column, since_us in moments.items():
        since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=since_us)
        counts = Call(">", (Column(column), Literal(since)))
        yield Filter("since", Input(_ROWS, shape), counts)


def is_counting(operator: Operator) -> bool:
    """Whether it is one of those filters."""
    return operator.name == "since" and operator.inputs[0].stream == _ROWS


def inline(operators: Iterable[Operator], schema: Schema) -> tuple[Columns, tuple[Expression, ...]]:
    """What filters and maps make of the input: each column, and what must hold, over the input."""
    columns: Columns = {field.name.lower(): Column(field.name) for field in schema}
    conditions: list[Expression] = []
    for operator in operators:
        if isinstance(operator, Filter):
            conditions += conjuncts(substitute(operator.predicate, columns))
        elif isinstance(operator, Map):
            columns = {
                name.lower(): substitute(expression, columns)
                for name, expression in operator.columns
            }
    return columns, tuple(conditions)


def substitute(expression: Expression, columns: Columns) -> Expression:
    """The expression with columns replaced by what they are made of."""

    def replace(part: Expression) -> Expression | None:
        return columns[part.name.lower()] if isinstance(part, Column) else None

    return transform(expression, replace)


def expressions_of(operator: Operator) -> tuple[Expression, ...]:
    """What a filter or a map computes of each row."""
    if isinstance(operator, Filter):
        return (operator.predicate,)
    assert isinstance(operator, Map)
    return tuple(expression for _, expression in operator.columns)


def first_not_evaluated(operators: Iterable[Operator]) -> str | None:
    """The first expression of filters and maps that kernels cannot compute."""
    for operator in operators:
        for expression in expressions_of(operator):
            if not can_evaluate(expression, operator.inputs[0].schema):
                return to_sql(expression)
    return None


def first_computed_time(made: Iterable[tuple[Expression, Schema]]) -> str | None:
    """The first of some expressions that computes a time: it may lie outside of the calendar."""
    for expression, schema in made:
        if not isinstance(expression, Column) and type_of(expression, schema) in _TIMES:
            return to_sql(expression)
    return None


def computed_by(operators: Iterable[Operator]) -> Iterator[tuple[Expression, Schema]]:
    """What maps compute, and of which rows."""
    for operator in operators:
        if isinstance(operator, Map):
            for _, expression in operator.columns:
                yield expression, operator.input.schema
