"""Rows of a batch, and expressions of them, each computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.expressions import evaluate
from penstock.kernels.segments import Ints
from penstock.model.expressions import Column, Expression
from penstock.model.schema import Schema

_Integers = tuple[Ints, npt.NDArray[np.bool_] | None]


@dataclass
class BatchRows:
    """Rows of a batch, with the expressions that have been computed of them so far.

    ``given`` are expressions that Spark has computed, by the column they came in.
    """

    rows: pa.Table
    schema: Schema
    given: Mapping[Expression, str] = field(default_factory=dict)
    _values: dict[Expression, pa.Array] = field(default_factory=dict, init=False)
    _integers: dict[Column, _Integers] = field(default_factory=dict, init=False)

    def value(self, expression: Expression) -> pa.Array:
        """The expression of every row."""
        if expression not in self._values:
            if expression in self.given:
                column = self.rows.column(self.given[expression])
                is_chunked = isinstance(column, pa.ChunkedArray)
                found = column.combine_chunks() if is_chunked else column
            else:
                found = evaluate(expression, self.rows, self.schema)
            self._values[expression] = found
        return self._values[expression]

    def integers(self, column: Column) -> _Integers:
        """An integer column as numbers, and which of them are none; None if all are."""
        if column not in self._integers:
            values, valid = self.value(column), None
            if values.null_count:
                valid = values.is_valid().to_numpy(zero_copy_only=False)
                values = pc.fill_null(values, 0)
            numbers = values.to_numpy(zero_copy_only=False).astype(np.int64)
            self._integers[column] = numbers, valid
        return self._integers[column]
