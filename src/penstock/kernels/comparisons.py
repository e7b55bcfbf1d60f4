"""Comparisons of integer columns with numbers: the commonest conditions, by one pass each."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.group_codes import Mask
from penstock.model.expressions import Call, Column, Expression, Literal, type_of
from penstock.model.schema import Schema
from penstock.model.types import DataType

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WHOLE = (DataType.INT, DataType.BIGINT)


@dataclass(frozen=True)
class Comparison:
    """``column operator number`` over integers; null meets nothing."""

    column: Column
    compare: Callable[[Any, Any], Any]
    number: int

    @classmethod
    def of(cls, expression: Expression, schema: Schema) -> Comparison | None:
        """The expression as such a comparison, if it is one.

        >>> schema = Schema.parse("v bigint, x double")
        >>> Comparison.of(Call(">=", (Column("v"), Literal(3))), schema).number
        3
        >>> Comparison.of(Call(">=", (Column("x"), Literal(3))), schema) is None
        True
        """
        match expression:
            case Call(name, (Column() as column, Literal(int() as number) as literal)):
                types = [type_of(column, schema), type_of(literal, schema)]
                if name in _OPERATORS and all(type in _WHOLE for type in types):
                    return cls(column, _OPERATORS[name], number)
        return None

    def met(self, batch: BatchRows) -> Mask:
        """Where it is true."""
        numbers, valid = batch.integers(self.column)
        met: Mask = np.asarray(self.compare(numbers, self.number))
        return met if valid is None else met & valid
