"""From syntax tree to expression: what each node means, checked as it is built.

What a column, an aggregate or a grouped expression means depends on the clause; a
:class:`ClauseScope` answers that. Everything else is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql import literals
from penstock.lang.sql.functions import WINDOWS, aggregate_name, function_call
from penstock.lang.sql.places import WrittenText
from penstock.lang.sql.syntax import DIALECT, type_name
from penstock.model.expressions import Call, Case, Cast, Expression, Literal, type_of
from penstock.model.schema import Schema
from penstock.model.types import DataType, data_type


class ClauseScope(Protocol):
    """What names mean in a clause."""

    @property
    def written(self) -> WrittenText: ...

    @property
    def schema(self) -> Schema:
        """The columns that expressions of this clause are over."""
        ...

    def meaning(self, node: exp.Expr) -> Expression | None:
        """What a node means here in particular; None when it means what it means anywhere."""
        ...

    def refuse_aggregate(self, node: exp.Expr) -> InputError:
        """The error for an aggregate that cannot be used in this clause."""
        ...


def to_expression(node: exp.Expr, scope: ClauseScope) -> Expression:
    """The expression ``node`` stands for, checked against the columns of ``scope``."""
    found = scope.meaning(node)
    if found is None:
        found = _general(node, scope)
    with scope.written.pointing_at(node):
        type_of(found, scope.schema)
    return found


_BINARY: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "and",
    exp.Or: "or",
    exp.Like: "like",
    exp.RegexpLike: "rlike",
}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_MOMENTS = (DataType.TIMESTAMP, DataType.DATE)
_PARTS = ("year", "month", "day", "dayofweek", "hour", "minute", "second")


# The parts of nodes that are read below, or say nothing that matters here.
_READ = {"this", "expression", "expressions", "negate", "ifs", "default", "true", "false"}
_READ |= {"to", "low", "high", "unit", "is_string", "query", "field", "unnest"}
_READ |= {"safe", "typed", "coalesce", "fraction_in_string"}


def _general(node: exp.Expr, scope: ClauseScope) -> Expression:
    kind = type(node)
    convert = _binary if kind in _BINARY else _CONVERTERS.get(kind)
    unread = [name for name, part in node.args.items() if part and name not in _READ]
    if convert is None or unread:
        raise _not_understood(node, scope)
    found = convert(node, scope)
    return Call("not", (found,)) if node.args.get("negate") else found


def _binary(node: exp.Expr, scope: ClauseScope) -> Expression:
    function = _BINARY[type(node)]
    given = (to_expression(node.this, scope), to_expression(node.expression, scope))
    return Call(function, _comparable(given, node, scope) if function in _COMPARISONS else given)


def _comparable(
    given: tuple[Expression, ...], node: exp.Expr, scope: ClauseScope
) -> tuple[Expression, ...]:
    """What is compared, with strings that are compared with times read as times."""
    types = [type_of(expression, scope.schema) for expression in given]
    wanted = next((type_ for type_ in types if type_ in _MOMENTS), None)
    if wanted is None:
        return given
    with scope.written.pointing_at(node):
        return tuple(
            literals.moment(expression.value, wanted)
            if isinstance(expression, Literal) and isinstance(expression.value, str)
            else expression
            for expression in given
        )


def _distinct_from(node: exp.Expr, scope: ClauseScope) -> Expression:
    given = (to_expression(node.this, scope), to_expression(node.expression, scope))
    return Call("not", (Call("<=>", given),))


def _ilike(node: exp.Expr, scope: ClauseScope) -> Expression:
    value, pattern = to_expression(node.this, scope), to_expression(node.expression, scope)
    return Call("like", (Call("lower", (value,)), Call("lower", (pattern,))))


def _paren(node: exp.Expr, scope: ClauseScope) -> Expression:
    return to_expression(node.this, scope)


def _not(node: exp.Expr, scope: ClauseScope) -> Expression:
    return Call("not", (to_expression(node.this, scope),))


def _negative(node: exp.Expr, scope: ClauseScope) -> Expression:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        with scope.written.pointing_at(node):
            return literals.number(f"-{node.this.name}")
    if isinstance(node.this, exp.Interval):
        return Literal(-literals.interval(node.this, scope.written))
    return Call("negate", (to_expression(node.this, scope),))


def _is(node: exp.Expr, scope: ClauseScope) -> Expression:
    operand = to_expression(node.this, scope)
    if isinstance(node.expression, exp.Null):
        return Call("is_null", (operand,))
    if isinstance(node.expression, exp.Boolean):
        return Call("<=>", (operand, Literal(bool(node.expression.this))))
    raise _not_understood(node, scope)


def _between(node: exp.Expr, scope: ClauseScope) -> Expression:
    value = to_expression(node.this, scope)
    ends = (to_expression(node.args[end], scope) for end in ("low", "high"))
    value, low, high = _comparable((value, *ends), node, scope)
    return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))


def _in(node: exp.Expr, scope: ClauseScope) -> Expression:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise _subquery(node, scope)
    given = tuple(to_expression(expression, scope) for expression in (node.this, *node.expressions))
    return Call("in", _comparable(given, node, scope))


def _concatenation(node: exp.Expr, scope: ClauseScope) -> Expression:
    parts = node.flatten() if isinstance(node, exp.DPipe) else node.expressions
    given = tuple(to_expression(part, scope) for part in parts)
    texts = [literal.value for literal in given if isinstance(literal, Literal)]
    if isinstance(node, exp.Concat) and len(texts) == len(given):  # 'one' 'after the other'
        return Literal("".join(map(str, texts)))
    return Call("concat", given)


def _case(node: exp.Expr, scope: ClauseScope) -> Expression:
    operand = to_expression(node.this, scope) if node.this else None
    branches = []
    for branch in node.args["ifs"]:
        when, then = to_expression(branch.this, scope), to_expression(branch.args["true"], scope)
        branches.append((when if operand is None else Call("=", (operand, when)), then))
    default = node.args.get("default")
    return Case(tuple(branches), to_expression(default, scope) if default else Literal(None))


def _if(node: exp.Expr, scope: ClauseScope) -> Expression:
    given = [node.this, node.args.get("true"), node.args.get("false")]
    return Call(
        "if", tuple(to_expression(argument, scope) for argument in given if argument is not None)
    )


def _cast(node: exp.Expr, scope: ClauseScope) -> Expression:
    with scope.written.pointing_at(node):
        type = data_type(type_name(node.args["to"]))
    if _is_constant_time(node, type):
        with scope.written.pointing_at(node.this):
            return literals.moment(node.this.name, type)
    return Cast(to_expression(node.this, scope), type)


def _is_constant_time(node: exp.Expr, type: DataType) -> bool:
    """``TIMESTAMP '…'``: sqlglot makes it a strict cast, and every CAST a forgiving one."""
    text = isinstance(node.this, exp.Literal) and node.this.is_string
    return text and not isinstance(node, exp.TryCast) and type in _MOMENTS


def _extract(node: exp.Expr, scope: ClauseScope) -> Expression:
    part = node.this.name.lower()
    if part not in _PARTS:
        hint = f"There are {', '.join(_PARTS)}."
        raise scope.written.error(node, f"no part {part} of a time", hint)
    return Call(part, (to_expression(node.expression, scope),))


def _literal(node: exp.Expr, scope: ClauseScope) -> Expression:
    if node.is_string:
        return Literal(node.name)
    with scope.written.pointing_at(node):
        return literals.number(node.name)


def _interval(node: exp.Expr, scope: ClauseScope) -> Expression:
    assert isinstance(node, exp.Interval)
    return Literal(literals.interval(node, scope.written))


def _function(node: exp.Expr, scope: ClauseScope) -> Expression:
    name = node.name
    if aggregate_name(name):
        raise scope.refuse_aggregate(node)
    if name.lower() in WINDOWS:
        hint = f"In SELECT and HAVING write {name.lower()}.start and {name.lower()}.end."
        raise scope.written.error(node, f"{name}(…) belongs into GROUP BY", hint)
    given = tuple(to_expression(expression, scope) for expression in node.expressions)
    with scope.written.pointing_at(node):
        return function_call(name, given)


def _not_understood(node: exp.Expr, scope: ClauseScope) -> InputError:
    if isinstance(node, exp.Window):
        return scope.written.error(
            node,
            "OVER is not supported on a stream",
            "Group by window(time, 'size') in a subquery and join with its result.",
        )
    if isinstance(node, exp.Query) or node.find(exp.Select):
        return _subquery(node, scope)
    if isinstance(node, exp.Star):
        return scope.written.error(node, "* stands for no single value here", "Name a column.")
    if isinstance(node, exp.Func):
        with scope.written.pointing_at(node):
            function_call(node.sql_name(), ())
    what = f"{node.sql(DIALECT, normalize_functions=False)} is not supported in a query"
    return scope.written.error(node, what, "Use the functions and operators of the manual.")


def _subquery(node: exp.Expr, scope: ClauseScope) -> InputError:
    return scope.written.error(
        node,
        "a subquery cannot be part of an expression",
        "Join with it: FROM … JOIN (SELECT …) AS name ON …",
    )


_CONVERTERS: Mapping[type[exp.Expr], Callable[[exp.Expr, ClauseScope], Expression]] = {
    exp.Anonymous: _function,
    exp.Between: _between,
    exp.Boolean: lambda node, _: Literal(bool(node.this)),
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Concat: _concatenation,
    exp.DPipe: _concatenation,
    exp.Extract: _extract,
    exp.ILike: _ilike,
    exp.If: _if,
    exp.In: _in,
    exp.Interval: _interval,
    exp.Is: _is,
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Not: _not,
    exp.Null: lambda _node, _scope: Literal(None),
    exp.NullSafeNEQ: _distinct_from,
    exp.Paren: _paren,
    exp.RawString: lambda node, _: Literal(node.name),
    exp.TryCast: _cast,
}
