"""Aggregates in a query: where they are, and what they compute."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql.expressions import ClauseScope, to_expression
from penstock.lang.sql.functions import aggregate_name
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Case, Expression, Literal
from penstock.model.operators import check_condition

# What is inside these is over other rows.
_ELSEWHERE = (exp.Window, exp.Select)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node computes something over all rows of a group."""
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    return isinstance(node, exp.Anonymous) and aggregate_name(node.name) is not None


def aggregate_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates in ``node``, in the order they are written; none inside another."""
    for part in node.dfs(
        prune=lambda expression: is_aggregate(expression) or isinstance(expression, _ELSEWHERE)
    ):
        if is_aggregate(part):
            yield part


def aggregate_call(node: exp.Expr, scope: ClauseScope) -> AggregateCall:
    """What the aggregate ``node`` computes over the rows of ``scope``."""
    condition = None
    if isinstance(node, exp.Filter):
        condition = to_expression(node.expression.this, scope)
        with scope.written.pointing_at(node.expression):
            check_condition(condition, scope.schema)
        node = node.this
    function = aggregate_name(node.name) or node.name
    arguments = _arguments(node, function, scope)
    with scope.written.pointing_at(node):
        call = AggregateCall(function, arguments)
        if condition is not None:
            call = _filtered(call, condition)
        call.result_type(scope.schema)
    return call


def _arguments(node: exp.Expr, function: str, scope: ClauseScope) -> tuple[Expression, ...]:
    given = node.expressions
    if given and isinstance(given[0], exp.Distinct):
        raise _distinct(node, given[0], function, scope)
    if function == "count":
        if len(given) == 1 and isinstance(given[0], exp.Star | exp.Literal):
            return ()
        if not given:
            raise scope.written.error(node, "count of nothing", "Write count(*).")
    return tuple(to_expression(argument, scope) for argument in given)


def _distinct(node: exp.Expr, given: exp.Expr, function: str, scope: ClauseScope) -> InputError:
    inner = ", ".join(scope.written.quoted(expression) for expression in given.expressions)
    hint = "Leave out DISTINCT."
    if function == "count":
        hint = f"Use approx_count_distinct({inner}), which needs little memory."
    return scope.written.error(node, f"{function}(DISTINCT …) is not supported on a stream", hint)


def _filtered(call: AggregateCall, condition: Expression) -> AggregateCall:
    """The aggregate over the rows for which ``condition`` is true."""
    if not call.arguments:
        return AggregateCall("count_if", (condition,))
    if len(call.arguments) > 1:
        raise InputError(
            f"{call.function} with FILTER is not supported", hint="Filter with WHERE in a subquery."
        )
    kept = Case(((condition, call.arguments[0]),), Literal(None))
    return AggregateCall(call.function, (kept,))
