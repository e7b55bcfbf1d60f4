"""What an aggregate computes over the rows of a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.errors import InputError, listed, suggestion
from penstock.model.expressions import Expression, to_sql, type_of
from penstock.model.schema import Schema
from penstock.model.types import DataType

_ORDERED = tuple(data_type for data_type in DataType if data_type is not DataType.INTERVAL)


def _sum_type(given: DataType) -> DataType | None:
    return DataType.BIGINT if given.is_integer else _number_type(given)


def _number_type(given: DataType) -> DataType | None:
    return DataType.DOUBLE if given.is_numeric else None


def _same_type(given: DataType) -> DataType | None:
    return given if given in _ORDERED else None


def _count_type(_: DataType) -> DataType | None:
    return DataType.BIGINT


def _condition_count_type(given: DataType) -> DataType | None:
    return DataType.BIGINT if given is DataType.BOOLEAN else None


@dataclass(frozen=True)
class AggregateFunction:
    """How many arguments a function takes and what it makes of the first one's type."""

    arguments: int
    result: Callable[[DataType], DataType | None]
    takes: str


AGGREGATES: Mapping[str, AggregateFunction] = {
    "count": AggregateFunction(1, _count_type, "one value or *"),
    "count_if": AggregateFunction(1, _condition_count_type, "a condition"),
    "sum": AggregateFunction(1, _sum_type, "a number"),
    "avg": AggregateFunction(1, _number_type, "a number"),
    "stddev": AggregateFunction(1, _number_type, "a number"),
    "variance": AggregateFunction(1, _number_type, "a number"),
    "min": AggregateFunction(1, _same_type, "a value that can be compared"),
    "max": AggregateFunction(1, _same_type, "a value that can be compared"),
    "min_by": AggregateFunction(2, _same_type, "a value and what to order by"),
    "max_by": AggregateFunction(2, _same_type, "a value and what to order by"),
    "approx_count_distinct": AggregateFunction(1, _count_type, "one value"),
}


@dataclass(frozen=True)
class AggregateCall:
    """A function over all rows of a window; no arguments is ``count(*)``."""

    function: str
    arguments: tuple[Expression, ...] = ()

    def __post_init__(self) -> None:
        if self.function not in AGGREGATES:
            names = tuple(AGGREGATES)
            hint = f"There are {listed(names)}. {suggestion(self.function, names)}".strip()
            raise InputError(f"no aggregate {self.function}", hint=hint)
        wanted = AGGREGATES[self.function]
        counts_all = self.function == "count" and not self.arguments
        if len(self.arguments) != wanted.arguments and not counts_all:
            raise InputError(
                f"{self.function} takes {wanted.takes}; it got {_counted(len(self.arguments))}"
            )

    def result_type(self, schema: Schema) -> DataType:
        """The type of the result over rows of ``schema``; raises where it makes no sense."""
        if not self.arguments:
            return DataType.BIGINT
        given = [type_of(argument, schema) for argument in self.arguments]
        result = AGGREGATES[self.function].result(given[0])
        if result is None:
            raise InputError(
                f"{self.function} takes {AGGREGATES[self.function].takes}; it got a {given[0]}"
            )
        return result

    def sql(self, schema: Schema | None = None) -> str:
        """The call as Spark SQL; an integer sum that overflows gives null, not an error."""
        arguments = ", ".join(to_sql(argument, schema) for argument in self.arguments) or "*"
        safe = schema is not None and self.function == "sum"
        return f"{'try_sum' if safe else self.function}({arguments})"


def _counted(arguments: int) -> str:
    return "1 argument" if arguments == 1 else f"{arguments} arguments"
