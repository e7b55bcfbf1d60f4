"""Closed windows to rows of a result: aggregates finished, then filtered and mapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.feeds.arrow import ARROW_TYPES, arrow_schema
from penstock.kernels.expressions import evaluate
from penstock.kernels.state_shape import END, MEMBER, START, StateShape
from penstock.kernels.window_plan import WindowPlan
from penstock.model.operators import Filter, Map, Operator
from penstock.model.types import DataType


@dataclass(frozen=True)
class MemberResult:
    """What a member gives by a round: the rows of its result, and those of streams inside it."""

    rows: pa.Table
    tapped: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def has_rows(self) -> bool:
        return any(table.num_rows for table in (self.rows, *self.tapped.values()))

    def giving(self, plan: WindowPlan, slices: pa.Table) -> MemberResult:
        """The same, and the slices that the member gives."""
        assert plan.slices is not None
        return MemberResult(self.rows, {**self.tapped, plan.slices.name: slices})


def give_results(
    shape: StateShape, closed: pa.Table, plans: Mapping[int, WindowPlan]
) -> Iterator[tuple[int, pa.Table]]:
    """The rows that each member gives for its closed windows, members in order."""
    for member, result in give_members(shape, closed, plans):
        if result.rows.num_rows:
            yield member, result.rows


def give_members(
    shape: StateShape, closed: pa.Table, plans: Mapping[int, WindowPlan]
) -> Iterator[tuple[int, MemberResult]]:
    """What each member gives for its closed windows, members in order."""
    finished = _finish(shape, closed)
    members = finished.column(MEMBER).to_numpy()
    order = np.argsort(members, kind="stable")
    ordered = finished.take(pa.array(order))
    kept, first = np.unique(members[order], return_index=True)
    edges = [*first.tolist(), len(members)]
    for at, member in enumerate(kept.tolist()):
        rows = ordered.slice(edges[at], edges[at + 1] - edges[at])
        result = _give(plans[member], rows)
        if result.has_rows:
            yield member, result


def _finish(shape: StateShape, closed: pa.Table) -> pa.Table:
    columns = {name: closed.column(name) for name in (MEMBER, START, END, *shape.keys)}
    for at, (kind, names) in enumerate(zip(shape.kinds, shape.states, strict=True)):
        states = [closed.column(name).combine_chunks() for name in names]
        columns[f"result_{at}"] = kind.finish(states)
    return pa.table(columns)


def _give(plan: WindowPlan, rows: pa.Table) -> MemberResult:
    time = ARROW_TYPES[DataType.TIMESTAMP]
    columns = [rows.column(f"key_{at}") for at in range(len(plan.keys))]
    columns += [rows.column(name).cast(time) for name in (START, END)]
    columns += [rows.column(f"result_{at}") for at in range(len(plan.calls))]
    result = _typed(columns, arrow_schema(plan.aggregate.output.schema))
    tapped, done = {}, 0
    for stream, steps in sorted(plan.taps, key=lambda tap: tap[1]):
        result = apply_operators(plan.after[done:steps], result)
        tapped[stream], done = result, steps
    if not plan.has_tail:
        return MemberResult(arrow_schema(plan.output.schema).empty_table(), tapped)
    return MemberResult(apply_operators(plan.after[done:], result), tapped)


def _typed(columns: Iterable[pa.ChunkedArray | pa.Array], wanted: pa.Schema) -> pa.Table:
    """The columns as a table of this schema."""
    typed = [
        column if column.type == type else column.cast(type)
        for column, type in zip(columns, wanted.types, strict=True)
    ]
    return pa.Table.from_arrays(typed, schema=wanted)


def apply_operators(operators: Iterable[Operator], rows: pa.Table) -> pa.Table:
    """What filters and maps make of some rows."""
    for operator in operators:
        if isinstance(operator, Filter):
            met = evaluate(operator.predicate, rows, operator.input.schema)
            rows = rows.filter(pc.fill_null(met, False))
        elif isinstance(operator, Map):
            rows = _map(operator, rows)
    return rows


def _map(operator: Map, rows: pa.Table) -> pa.Table:
    schema = operator.input.schema
    values = [evaluate(expression, rows, schema) for _, expression in operator.columns]
    wanted = arrow_schema(operator.output.schema)
    return _typed(values, wanted)
