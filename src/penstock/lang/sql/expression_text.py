"""From expression back to SQL, with no more parentheses than needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from math import isfinite, isnan

from sqlglot import exp

from penstock.lang.sql.syntax import DIALECT, is_plain_name
from penstock.model.aggregates import AggregateCall
from penstock.model.durations import duration_text
from penstock.model.expressions import Call, Case, Cast, Column, Expression, Literal, Scalar
from penstock.model.types import DataType

Columns = Callable[[str], exp.Expr]


class _Level(IntEnum):
    """How tightly a node binds."""

    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7
    ATOM = 8


_OPERATORS: Mapping[str, tuple[type[exp.Expr], _Level]] = {
    "or": (exp.Or, _Level.OR),
    "and": (exp.And, _Level.AND),
    "=": (exp.EQ, _Level.COMPARISON),
    "<>": (exp.NEQ, _Level.COMPARISON),
    "<": (exp.LT, _Level.COMPARISON),
    "<=": (exp.LTE, _Level.COMPARISON),
    ">": (exp.GT, _Level.COMPARISON),
    ">=": (exp.GTE, _Level.COMPARISON),
    "<=>": (exp.NullSafeEQ, _Level.COMPARISON),
    "like": (exp.Like, _Level.COMPARISON),
    "rlike": (exp.RegexpLike, _Level.COMPARISON),
    "+": (exp.Add, _Level.SUM),
    "-": (exp.Sub, _Level.SUM),
    "*": (exp.Mul, _Level.PRODUCT),
    "/": (exp.Div, _Level.PRODUCT),
    "%": (exp.Mod, _Level.PRODUCT),
}


def expression_sql(expression: Expression) -> str:
    """The expression as a person would write it; parses back to an equal one.

    >>> nine = Call(">", (Call("+", (Column("kwh"), Literal(1.5))), Literal(9)))
    >>> expression_sql(Call("and", (nine, Call("not", (Call("is_null", (Column("home"),)),)))))
    'kwh + 1.5 > 9 AND home IS NOT NULL'
    """
    return node_sql(to_node(expression, plain_column))


def node_sql(node: exp.Expr) -> str:
    """A syntax tree as text, function names as they are."""
    return node.sql(DIALECT, normalize_functions=False, comments=False)


def name_node(name: str) -> exp.Identifier:
    """A name, quoted if it would be read as something else."""
    return exp.to_identifier(name, quoted=not is_plain_name(name))


def plain_column(name: str) -> exp.Expr:
    """A column without its relation."""
    return exp.Column(this=name_node(name))


def to_node(expression: Expression, columns: Columns) -> exp.Expr:
    """The syntax tree of an expression, each column as ``columns`` gives it."""
    match expression:
        case Column(name):
            return columns(name)
        case Literal(value):
            return _literal(value)
        case Cast(operand, type):
            return exp.TryCast(this=to_node(operand, columns), to=_type(type))
        case Case(branches, otherwise):
            return _case(branches, otherwise, columns)
        case Call(function, arguments):
            return _call(function, arguments, columns)


def aggregate_node(call: AggregateCall, columns: Columns) -> exp.Expr:
    """The syntax tree of an aggregate."""
    arguments = [to_node(argument, columns) for argument in call.arguments]
    return exp.Anonymous(this=call.function, expressions=arguments or [exp.Star()])


def interval_node(us: int) -> exp.Expr:
    """The syntax tree of an interval."""
    count, unit = duration_text(abs(us)).split()
    sign = "-" if us < 0 else ""
    return exp.Interval(
        this=exp.Literal.string(f"{sign}{count}"), unit=exp.var(unit.removesuffix("s").upper())
    )


def _call(function: str, arguments: tuple[Expression, ...], columns: Columns) -> exp.Expr:
    given = [to_node(argument, columns) for argument in arguments]
    if function in _OPERATORS and len(given) == 2:
        return (
            _between(arguments, columns)
            if _is_range(function, arguments)
            else _infix(function, given)
        )
    match function:
        case "not":
            return exp.Not(this=_bound(given[0], _Level.NOT))
        case "negate":
            return exp.Neg(this=_bound(given[0], _Level.ATOM, signs=True))
        case "is_null":
            return exp.Is(this=_bound(given[0], _Level.SUM), expression=exp.Null())
        case "in" if len(given) > 1:
            return exp.In(this=_bound(given[0], _Level.SUM), expressions=given[1:])
    return exp.Anonymous(this=function, expressions=given)


def _infix(function: str, given: list[exp.Expr]) -> exp.Expr:
    kind, level = _OPERATORS[function]
    left = level + 1 if level is _Level.COMPARISON else level
    return kind(this=_bound(given[0], left), expression=_bound(given[1], level + 1))


def _is_range(function: str, arguments: tuple[Expression, ...]) -> bool:
    """Whether this is what BETWEEN stands for."""
    match (function, *arguments):
        case ("and", Call(">=", (one, _)), Call("<=", (other, _))):
            return one == other
    return False


def _between(arguments: tuple[Expression, ...], columns: Columns) -> exp.Expr:
    low, high = arguments
    assert isinstance(low, Call) and isinstance(high, Call)
    value, least = (_bound(to_node(argument, columns), _Level.SUM) for argument in low.arguments)
    most = _bound(to_node(high.arguments[1], columns), _Level.SUM)
    return exp.Between(this=value, low=least, high=most)


def _case(
    branches: Iterable[tuple[Expression, Expression]], otherwise: Expression, columns: Columns
) -> exp.Expr:
    ifs = [
        exp.If(this=to_node(when, columns), true=to_node(then, columns)) for when, then in branches
    ]
    default = None if otherwise == Literal(None) else to_node(otherwise, columns)
    return exp.Case(ifs=ifs, default=default)


def _type(type: DataType) -> exp.Expr:
    return exp.DataType.build(str(type), dialect=DIALECT)


def _literal(value: Scalar) -> exp.Expr:
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case float() if not isfinite(value):
            name = "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return exp.TryCast(this=exp.Literal.string(name), to=_type(DataType.DOUBLE))
        case int() | float():
            number = exp.Literal.number(repr(abs(value)))
            return exp.Neg(this=number) if repr(value).startswith("-") else number
        case str():
            return exp.Literal.string(value)
        case datetime():
            text = value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
            return exp.Cast(this=exp.Literal.string(text), to=_type(DataType.TIMESTAMP))
        case date():
            text = value.isoformat()
            return exp.Cast(this=exp.Literal.string(text), to=_type(DataType.DATE))
        case timedelta():
            return interval_node(value // timedelta(microseconds=1))


def _bound(node: exp.Expr, level: int, signs: bool = False) -> exp.Expr:
    """``node`` where something binding at ``level`` is expected, in parentheses if needed."""
    loose = _level(node) < level or (signs and isinstance(node, exp.Literal | exp.Interval))
    return exp.Paren(this=node) if loose else node


def _level(node: exp.Expr) -> _Level:
    for kind, level in _OPERATORS.values():
        if isinstance(node, kind):
            return level
    if isinstance(node, exp.Not):
        return _Level.NOT
    if isinstance(node, exp.Is | exp.In | exp.Between):
        return _Level.COMPARISON
    return _Level.SIGN if isinstance(node, exp.Neg) else _Level.ATOM
