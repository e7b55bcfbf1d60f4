"""Random expressions over random columns, written for Penstock and for DuckDB.

One line an operation: what it gives, what it takes, and how it is written in either language.
Both languages are written by hand, each as its own manual says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

Columns = Mapping[str, str]
Named = Callable[[str], str]


@dataclass(frozen=True)
class Operation:
    """Something to compute: the type it gives, the types it takes, and its two spellings."""

    gives: str
    takes: tuple[str, ...]
    penstock: str
    duck: str


@dataclass(frozen=True)
class Expression:
    """An operation on other expressions, a column, or a constant (which both write alike)."""

    type: str
    column: str = ""
    constant: str = ""
    operation: Operation | None = None
    operands: tuple[Expression, ...] = ()

    def penstock(self, named: Named = str) -> str:
        """The expression as Penstock's SQL; ``named`` says how a column is called."""
        if self.operation is None:
            return named(self.column) if self.column else self.constant
        return self.operation.penstock.format(
            *(operand.penstock(named) for operand in self.operands)
        )

    def duck(self, named: Named = str) -> str:
        """The expression as DuckDB's SQL."""
        if self.operation is None:
            return named(self.column) if self.column else self.constant
        return self.operation.duck.format(*(operand.duck(named) for operand in self.operands))


def _op(gives: str, takes: str, penstock: str, duck: str = "") -> Operation:
    return Operation(gives, tuple(takes.split()), penstock, duck or penstock)


_CASE = "CASE WHEN {0} THEN {1} ELSE {2} END"
_HALF_CASE = "CASE WHEN {0} THEN {1} END"
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")

OPERATIONS = (
    _op("int", "int int", "({0} + {1})"),
    _op("int", "int int", "({0} - {1})"),
    _op("int", "int int", "({0} * {1})"),
    _op("int", "int int", "({0} % {1})", "({0} % nullif({1}, 0))"),
    _op("int", "int", "(- {0})"),
    _op("int", "int", "abs({0})"),
    _op("int", "int int", "greatest({0}, {1})"),
    _op("int", "int int", "least({0}, {1})"),
    _op("int", "int int", "nullif({0}, {1})"),
    _op("int", "int int", "coalesce({0}, {1})"),
    _op("int", "bool int int", _CASE),
    _op("int", "bool int int", "if({0}, {1}, {2})", _CASE),
    _op("int", "double", "floor({0})", "CAST(floor({0}) AS BIGINT)"),
    _op("int", "double", "ceil({0})", "CAST(ceil({0}) AS BIGINT)"),
    _op("int", "double", "CAST({0} AS bigint)", "CAST(trunc({0}) AS BIGINT)"),
    _op("int", "string", "length({0})"),
    _op("int", "string", "CAST({0} AS bigint)", "TRY_CAST({0} AS BIGINT)"),
    _op("int", "time", "second({0})"),
    _op("int", "time", "EXTRACT(MINUTE FROM {0})", "minute({0})"),
    # Small enough to be multiplied with each other.
    _op("int", "time", "(unix_seconds({0}) % 9973)", "(floor_div(epoch_us({0}), 1000000) % 9973)"),
    _op("int", "time", "(unix_micros({0}) % 9973)", "(epoch_us({0}) % 9973)"),
    _op("int", "time", "year({0})"),
    _op("int", "time", "dayofweek({0})", "(dayofweek({0}) + 1)"),
    *(
        _op(
            "int",
            "time",
            f"(unix_micros(date_trunc('{unit}', {{0}})) % 9973)",
            f"(epoch_us(date_trunc('{unit}', {{0}})) % 9973)",
        )
        for unit in ("second", "hour", "week", "month")
    ),
    _op("double", "double double", "({0} + {1})"),
    _op("double", "double double", "({0} - {1})"),
    _op("double", "double double", "({0} * {1})"),
    _op("double", "double double", "({0} / {1})", "({0} / nullif({1}, 0))"),
    _op("double", "int int", "({0} / {1})", "({0}::DOUBLE / nullif({1}, 0))"),
    _op("double", "int", "CAST({0} AS double)", "CAST({0} AS DOUBLE)"),
    _op("double", "double", "sqrt(abs({0}))"),
    _op("double", "double", "round({0})"),
    _op("double", "bool double double", _CASE),
    _op("double", "double double", "ifnull({0}, {1})"),
    _op("string", "string", "upper({0})"),
    _op("string", "string", "lower({0})"),
    _op("string", "string", "trim({0})"),
    _op("string", "string string", "({0} || {1})"),
    _op("string", "string string", "concat({0}, '-', {1})", "({0} || '-' || {1})"),
    _op("string", "string string", "coalesce({0}, {1})"),
    _op("string", "string", "substring({0}, 2, 2)"),
    _op("string", "string", "replace({0}, 'a', 'xy')"),
    _op("string", "string", "split_part({0}, 'b', 1)"),
    _op("string", "string", "split_part({0}, 'b', 0)", "CAST(NULL AS VARCHAR)"),
    _op("string", "int", "CAST({0} AS string)", "CAST({0} AS VARCHAR)"),
    _op("string", "bool string", _HALF_CASE),
    _op(
        "string", "time", "date_format({0}, 'yyyy-MM-dd HH:mm')", "strftime({0}, '%Y-%m-%d %H:%M')"
    ),
    *(_op("bool", "int int", f"({{0}} {sign} {{1}})") for sign in _COMPARED),
    *(_op("bool", "double double", f"({{0}} {sign} {{1}})") for sign in ("<", ">=")),
    *(_op("bool", "string string", f"({{0}} {sign} {{1}})") for sign in ("=", "<>", "<", ">=")),
    _op("bool", "time", "({0} < TIMESTAMP '1970-01-01 00:00:00')"),
    _op("bool", "int", "({0} IS NULL)"),
    _op("bool", "string", "({0} IS NOT NULL)"),
    _op("bool", "int", "({0} IN (1, 2, 3, 5, 8))"),
    _op("bool", "string", "({0} NOT IN ('a', 'b'))"),
    _op("bool", "int int int", "({0} BETWEEN {1} AND {2})"),
    _op("bool", "string", "({0} LIKE '%b%')"),
    _op("bool", "string", "({0} RLIKE '^[a-c]')", "regexp_matches({0}, '^[a-c]')"),
    _op("bool", "string", "startswith({0}, 'a')", "starts_with({0}, 'a')"),
    _op("bool", "int int", "({0} IS DISTINCT FROM {1})"),
    _op("bool", "bool bool", "({0} AND {1})"),
    _op("bool", "bool bool", "({0} OR {1})"),
    _op("bool", "bool", "(NOT {0})"),
)

_CONSTANTS = {
    "int": ("0", "1", "2", "3", "7", "-4"),
    "double": ("CAST(0.5 AS double)", "CAST(-1.25 AS double)", "CAST(3 AS double)"),
    "string": ("'a'", "'bb'", "''", "'é'"),
    "bool": ("TRUE",),
}


def expression(random: Random, type: str, columns: Columns, depth: int = 2) -> Expression:
    """A random expression of a type; columns are more likely than constants."""
    fitting = [name for name, its in columns.items() if its == type]
    if type == "time" or depth == 0 or random.random() < 0.25:
        if fitting and (type == "time" or random.random() < 0.8):
            return Expression(type, column=random.choice(fitting))
        return Expression(type, constant=random.choice(_CONSTANTS[type]))
    operation = random.choice(
        [one for one in OPERATIONS if one.gives == type and _can(one, columns)]
    )
    operands = tuple(expression(random, one, columns, depth - 1) for one in operation.takes)
    return Expression(type, operation=operation, operands=operands)


def _can(operation: Operation, columns: Columns) -> bool:
    return "time" not in operation.takes or "time" in columns.values()


def condition(random: Random, columns: Columns) -> Expression:
    """A random condition that depends on its row."""
    while True:
        found = expression(random, "bool", columns)
        if _reads_columns(found):
            return found


def _reads_columns(given: Expression) -> bool:
    return bool(given.column) or any(map(_reads_columns, given.operands))
