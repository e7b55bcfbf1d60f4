"""A fragment that hands on rows of a stream it shares: filters and maps, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from penstock.feeds.arrow import arrow_schema
from penstock.kernels.inlining import computed_by, first_computed_time, first_not_evaluated
from penstock.kernels.window_plan import NotLight, counting_operators
from penstock.kernels.window_results import apply_operators
from penstock.model.fragments import Fragment
from penstock.model.ids import PartId
from penstock.model.operators import Filter, Map, Operator
from penstock.model.schema import Schema, Shape


@dataclass(frozen=True)
class RowsPlan:
    """Filters and maps over the rows of a shared stream.

    Only what others have already computed is read so: results are few beside the rows behind them.
    """

    name: PartId
    stream: str
    schema: Schema
    operators: tuple[Operator, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        """What it reads."""
        return (self.stream,)

    @property
    def output(self) -> Shape:
        """What it gives."""
        return self.operators[-1].output

    def give(self, rows: pa.Table) -> pa.Table:
        """What it makes of some rows of the stream."""
        return apply_operators(self.operators, rows.cast(arrow_schema(self.schema)))


def plan_rows(fragment: Fragment) -> RowsPlan | NotLight:
    """The fragment as filters and maps over a stream it shares, or why it is not."""
    operators = tuple(counting_operators(fragment))
    for operator in operators:
        if not isinstance(operator, Filter | Map):
            return NotLight(f"{operator.name} is a {operator.kind}")
    missing = first_not_evaluated(operators)
    if missing is not None:
        return NotLight(f"kernels cannot compute {missing}")
    computed = first_computed_time(computed_by(operators))
    if computed is not None:
        return NotLight(f"kernels cannot keep {computed} within the calendar")
    first = operators[0].inputs[0].schema
    return RowsPlan(fragment.id, fragment.inputs[0], first, operators)
