"""Expressions evaluated on Arrow columns, where that gives exactly what Spark gives.

A projection of hundreds of expressions costs Spark more than the aggregates behind it, most of it
planning. What :func:`can_evaluate` accepts is computed here instead; everything else is left to
Spark. Whatever is added to ``_FUNCTIONS`` is compared with Spark by ``tests/spark/kernels``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InputError
from penstock.feeds.arrow import ARROW_TYPES
from penstock.model.expressions import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    children,
    type_of,
)
from penstock.model.schema import Schema
from penstock.model.types import DataType, common_type

Types = Sequence[DataType]
Evaluate = Callable[[list[pa.Array], DataType], pa.Array]

_LITERALS = (
    DataType.BOOLEAN,
    DataType.INT,
    DataType.BIGINT,
    DataType.DOUBLE,
    DataType.STRING,
    DataType.TIMESTAMP,
    DataType.NULL,
)
_WIDENED = {
    (DataType.INT, DataType.BIGINT),
    (DataType.INT, DataType.DOUBLE),
    (DataType.BIGINT, DataType.DOUBLE),
}
_INT_LOW, _INT_HIGH = -(2**31), 2**31 - 1


def can_evaluate(expression: Expression, schema: Schema) -> bool:
    """Whether :func:`evaluate` computes the expression, with Spark's meaning.

    >>> rows = Schema.parse("k string, v bigint")
    >>> can_evaluate(Call("%", (Column("v"), Literal(7))), rows)
    True
    >>> can_evaluate(Call("upper", (Column("k"),)), rows)
    False
    """
    if type_of(expression, schema) not in (*ARROW_TYPES, DataType.NULL):
        return False
    if not all(can_evaluate(child, schema) for child in children(expression)):
        return False
    match expression:
        case Column():
            return True
        case Literal():
            return type_of(expression, schema) in _LITERALS
        case Cast(operand, wanted):
            given = type_of(operand, schema)
            return given in (wanted, DataType.NULL) or (given, wanted) in _WIDENED
        case Case():
            return True
        case Call(function, arguments):
            known = _FUNCTIONS.get(function)
            return known is not None and known[0](
                [type_of(argument, schema) for argument in arguments]
            )


def evaluate(expression: Expression, rows: pa.Table, schema: Schema) -> pa.Array:
    """The values of the expression for all rows, in one array.

    >>> table = pa.table({"v": pa.array([15, None], pa.int64())})
    >>> evaluate(Call("%", (Column("v"), Literal(7))), table, Schema.parse("v bigint")).to_pylist()
    [1, None]
    """
    wanted = type_of(expression, schema)
    match expression:
        case Column(name):
            return _whole(rows.column(schema[name].name))
        case Literal(value):
            return pa.repeat(pa.scalar(value, _arrow_type(wanted)), rows.num_rows)
        case Cast(operand, _):
            return _widen(evaluate(operand, rows, schema), wanted)
        case Case(branches, otherwise):
            result = _widen(evaluate(otherwise, rows, schema), wanted)
            for when, then in reversed(branches):
                chosen = _widen(evaluate(then, rows, schema), wanted)
                result = _choose(evaluate(when, rows, schema), chosen, result)
            return result
        case Call(function, arguments):
            values = [evaluate(argument, rows, schema) for argument in arguments]
            return _FUNCTIONS[function][1](values, wanted)
    raise InputError(f"{expression!r} cannot be evaluated here")


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _arrow_type(type: DataType) -> pa.DataType:
    return pa.null() if type is DataType.NULL else ARROW_TYPES[type]


def _widen(values: pa.Array, wanted: DataType) -> pa.Array:
    target = _arrow_type(wanted)
    return values if values.type == target else values.cast(target, safe=False)


_MODEL_TYPES = {arrow: model for model, arrow in ARROW_TYPES.items()} | {pa.null(): DataType.NULL}


def _widen_alike(values: list[pa.Array]) -> list[pa.Array]:
    wanted = DataType.NULL
    for column in values:
        both = common_type(wanted, _MODEL_TYPES[column.type])
        assert both is not None, "types were checked when the expression was built"
        wanted = both
    return [_widen(column, wanted) for column in values]


def _choose(condition: pa.Array, chosen: pa.Array, otherwise: pa.Array) -> pa.Array:
    """A condition that is null is not met."""
    return pc.if_else(_met(condition), chosen, otherwise)


def _met(condition: pa.Array) -> pa.Array:
    if pa.types.is_null(condition.type):
        return pa.repeat(pa.scalar(False), len(condition))
    return pc.fill_null(condition, False)


def _equal(left: pa.Array, right: pa.Array) -> pa.Array:
    found = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        # Spark has one NaN, which equals itself and is greater than everything else.
        found = pc.or_(found, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return found


def _less(left: pa.Array, right: pa.Array) -> pa.Array:
    found = pc.less(left, right)
    if pa.types.is_floating(left.type):
        found = pc.or_(found, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
    return found


def _compared(compare: Callable[[pa.Array, pa.Array], pa.Array]) -> Evaluate:
    def evaluate_comparison(values: list[pa.Array], _: DataType) -> pa.Array:
        left, right = _widen_alike(values)
        if pa.types.is_null(left.type):
            return pa.nulls(len(left), pa.bool_())
        return compare(left, right)

    return evaluate_comparison


def _same_or_both_null(values: list[pa.Array], _: DataType) -> pa.Array:
    left, right = _widen_alike(values)
    if pa.types.is_null(left.type):
        return pa.repeat(pa.scalar(True), len(left))
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(_equal(left, right), False), both_null)


def _is_in(values: list[pa.Array], _: DataType) -> pa.Array:
    found = None
    for other in values[1:]:
        same = _compared(_equal)([values[0], other], DataType.BOOLEAN)
        found = same if found is None else pc.or_kleene(found, same)
    return found


def _logic(combine: Callable[..., pa.Array]) -> Evaluate:
    return lambda values, _: combine(*(_widen(value, DataType.BOOLEAN) for value in values))


def _integers(values: list[pa.Array]) -> tuple[list[np.ndarray], np.ndarray]:
    """Integers as int64, and which rows have all of them."""
    valid = np.ones(len(values[0]), bool)
    numbers = []
    for column in values:
        if column.null_count:
            valid &= column.is_valid().to_numpy(zero_copy_only=False)
            column = pc.fill_null(column, 0)
        numbers.append(column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    return numbers, valid


def _kept(numbers: np.ndarray, valid: np.ndarray, wanted: DataType) -> pa.Array:
    """Integers of a type; null where they are not valid or do not fit it."""
    if wanted is DataType.INT:
        valid = valid & (numbers >= _INT_LOW) & (numbers <= _INT_HIGH)
        numbers = np.where(valid, numbers, 0)
    return pa.array(numbers, _arrow_type(wanted), mask=None if valid.all() else ~valid)


def _arithmetic(
    plain: Callable[..., pa.Array],
    integers: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> Evaluate:
    def evaluate_arithmetic(values: list[pa.Array], wanted: DataType) -> pa.Array:
        if wanted is DataType.DOUBLE:
            return plain(*(_widen(value, wanted) for value in values))
        if wanted is DataType.NULL or any(pa.types.is_null(value.type) for value in values):
            return pa.nulls(len(values[0]), _arrow_type(wanted))
        (left, right), valid = _integers(values)
        with np.errstate(over="ignore"):
            result, fits = integers(left, right)
        return _kept(result, valid & fits, wanted)

    return evaluate_arithmetic


def _add(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    result = left + right
    return result, ((left ^ result) & (right ^ result)) >= 0


def _subtract(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    result = left - right
    return result, ((left ^ right) & (left ^ result)) >= 0


def _multiply(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    result = left * right
    # Doubles tell products that surely fit; the few that are near the limit are multiplied again.
    near = np.abs(left.astype(np.float64) * right.astype(np.float64)) >= 2.0**62
    fits = np.ones(len(result), bool)
    for row in np.flatnonzero(near):
        fits[row] = -(2**63) <= int(left[row]) * int(right[row]) < 2**63
    return result, fits


def _remainder(values: list[pa.Array], wanted: DataType) -> pa.Array:
    if any(pa.types.is_null(value.type) for value in values):
        return pa.nulls(len(values[0]), _arrow_type(wanted))
    (left, right), valid = _integers(values)
    divisor = np.where((right == 0) | (right == -1), 1, right)
    return _kept(np.fmod(left, divisor), valid & (right != 0), wanted)


def _divide(values: list[pa.Array], wanted: DataType) -> pa.Array:
    left, right = (_widen(value, wanted) for value in values)
    divisor = pc.if_else(pc.equal(right, 0.0), pa.scalar(None, pa.float64()), right)
    return pc.divide(left, divisor)


def _negate(values: list[pa.Array], wanted: DataType) -> pa.Array:
    if wanted is DataType.DOUBLE:
        return pc.negate(values[0])
    zero = pa.repeat(pa.scalar(0, values[0].type), len(values[0]))
    return _arithmetic(pc.subtract, _subtract)([zero, values[0]], wanted)


def _absolute(values: list[pa.Array], wanted: DataType) -> pa.Array:
    if wanted is DataType.DOUBLE:
        return pc.abs(values[0])
    return _choose(pc.less(values[0], 0), _negate(values, wanted), values[0])


def _coalesce(values: list[pa.Array], _: DataType) -> pa.Array:
    return pc.coalesce(*_widen_alike(values))


def _if(values: list[pa.Array], _: DataType) -> pa.Array:
    chosen, otherwise = _widen_alike(values[1:])
    return _choose(values[0], chosen, otherwise)


def _null_if(values: list[pa.Array], _: DataType) -> pa.Array:
    same = _compared(_equal)(values, DataType.BOOLEAN)
    return pc.if_else(_met(same), pa.scalar(None, values[0].type), values[0])


def _anything(types: Types) -> bool:
    return True


def _numbers(types: Types) -> bool:
    return all(type in (DataType.INT, DataType.BIGINT, DataType.DOUBLE) for type in types)


def _whole_numbers(types: Types) -> bool:
    return all(type in (DataType.INT, DataType.BIGINT) for type in types)


def _booleans(types: Types) -> bool:
    return all(type in (DataType.BOOLEAN, DataType.NULL) for type in types)


def _comparable(types: Types) -> bool:
    """Dates and times are compared with their like only: no cast between them is needed then."""
    times = {DataType.DATE, DataType.TIMESTAMP}
    return DataType.BINARY not in types and not times <= set(types)


def _one_time(types: Types) -> bool:
    return list(types) == [DataType.TIMESTAMP]


_FUNCTIONS: Mapping[str, tuple[Callable[[Types], bool], Evaluate]] = {
    "+": (_numbers, _arithmetic(pc.add, _add)),
    "-": (_numbers, _arithmetic(pc.subtract, _subtract)),
    "*": (_numbers, _arithmetic(pc.multiply, _multiply)),
    "/": (_numbers, _divide),
    "%": (_whole_numbers, _remainder),
    "negate": (_numbers, _negate),
    "abs": (_numbers, _absolute),
    "=": (_comparable, _compared(_equal)),
    "<>": (_comparable, _compared(lambda left, right: pc.invert(_equal(left, right)))),
    "<": (_comparable, _compared(_less)),
    "<=": (_comparable, _compared(lambda left, right: pc.invert(_less(right, left)))),
    ">": (_comparable, _compared(lambda left, right: _less(right, left))),
    ">=": (_comparable, _compared(lambda left, right: pc.invert(_less(left, right)))),
    "<=>": (_comparable, _same_or_both_null),
    "in": (_comparable, _is_in),
    "and": (_booleans, _logic(pc.and_kleene)),
    "or": (_booleans, _logic(pc.or_kleene)),
    "not": (_booleans, _logic(pc.invert)),
    "is_null": (_anything, lambda values, _: pc.is_null(values[0])),
    "coalesce": (_comparable, _coalesce),
    "if": (_comparable, _if),
    "nullif": (_comparable, _null_if),
    "unix_micros": (_one_time, lambda values, _: values[0].cast(pa.int64())),
}
