"""Aggregate functions, as in ``ps.sum("kwh")``; they are checked once the columns are known."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.lang.sql import parse_aggregate, parse_expression
from penstock.model.aggregates import AggregateCall
from penstock.model.schema import Schema


@dataclass(frozen=True)
class Aggregation:
    """An aggregate function of columns or expressions written in SQL."""

    function: str
    arguments: tuple[str, ...] = ()

    def call(self, schema: Schema) -> AggregateCall:
        """The call over rows of ``schema``; raises where it makes no sense."""
        origin = f"argument of {self.function}"
        arguments = (
            parse_expression(argument, schema, origin=origin) for argument in self.arguments
        )
        return AggregateCall(self.function, tuple(arguments))


def aggregate_call(written: Aggregation | str, schema: Schema) -> AggregateCall:
    """The call written as ``ps.sum("kwh")`` or as ``"sum(kwh)"``."""
    if isinstance(written, str):
        return parse_aggregate(written, schema)
    return written.call(schema)


def count(expression: str | None = None) -> Aggregation:
    """How many rows there are, or how many where ``expression`` is not null."""
    return Aggregation("count", () if expression is None else (expression,))


def count_if(condition: str) -> Aggregation:
    """How many rows fulfil ``condition``."""
    return Aggregation("count_if", (condition,))


def sum(expression: str) -> Aggregation:
    """The sum; of whole numbers a whole number."""
    return Aggregation("sum", (expression,))


def avg(expression: str) -> Aggregation:
    """The mean."""
    return Aggregation("avg", (expression,))


def stddev(expression: str) -> Aggregation:
    """The standard deviation of a sample."""
    return Aggregation("stddev", (expression,))


def variance(expression: str) -> Aggregation:
    """The variance of a sample."""
    return Aggregation("variance", (expression,))


def min(expression: str) -> Aggregation:
    """The smallest value."""
    return Aggregation("min", (expression,))


def max(expression: str) -> Aggregation:
    """The largest value."""
    return Aggregation("max", (expression,))


def min_by(expression: str, by: str) -> Aggregation:
    """The value in the row where ``by`` is smallest."""
    return Aggregation("min_by", (expression, by))


def max_by(expression: str, by: str) -> Aggregation:
    """The value in the row where ``by`` is largest."""
    return Aggregation("max_by", (expression, by))


def approx_count_distinct(expression: str) -> Aggregation:
    """About how many different values there are."""
    return Aggregation("approx_count_distinct", (expression,))
