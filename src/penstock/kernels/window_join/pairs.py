"""From two runs to joined rows: pairs found, keys compared, columns put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import RunError
from penstock.kernels.window_join.probing import find_partners, pair_up, portions
from penstock.kernels.window_join.runs import SortedRun
from penstock.kernels.window_join.sorting import Rows
from penstock.kernels.window_join.terms import JoinTerms
from penstock.load.arrays import Flags

PAIRS_AT_ONCE = 1 << 18
"""Pairs that are put together at a time: a hot key costs time, not memory."""


def join_runs(
    terms: JoinTerms,
    probing: SortedRun,
    run: SortedRun,
    side: Literal["left", "right"],
    earliest_us: int,
) -> Iterator[pa.Table]:
    """The joined rows of two runs, where ``probing`` is of the named side.

    Rows of ``run`` before ``earliest_us`` have left the window.
    """
    for mine, theirs in _candidates(terms, probing, run, side, earliest_us):
        pairs = (probing.rows, mine, run.rows, theirs)
        if side == "right":
            pairs = (run.rows, theirs, probing.rows, mine)
        found = _put_together(terms, *_match(terms, *pairs)[:2])
        if terms.residual is not None:
            found = found.filter(pa.array(_check_condition(terms, found)))
        if found.num_rows:
            yield found


def find_unmatched(
    terms: JoinTerms, left: SortedRun, right: Sequence[SortedRun], earliest_us: int
) -> pa.Table:
    """The left rows that have no partner in any of the runs, with nulls for the right columns."""
    alone = np.ones(left.rows.num_rows, np.bool_)
    rows = left.rows if terms.residual else left.rows.select(terms.left.keys)
    for run in right:
        others = run.rows if terms.residual else run.rows.select(terms.right.keys)
        for mine, theirs in _candidates(terms, left, run, "left", earliest_us):
            pair_left, pair_right, matched = _match(terms, rows, mine, others, theirs)
            if terms.residual is not None:
                pairs = _put_together(terms, pair_left, pair_right)
                matched = matched[_check_condition(terms, pairs)]
            alone[matched] = False
    kept = pa.Table.from_batches([left.rows.select(terms.left.columns)]).filter(pa.array(alone))
    fields = [terms.right.schema.field(name) for name in terms.right.columns]
    nulls = [pa.nulls(kept.num_rows, field.type) for field in fields]
    return pa.Table.from_arrays([*kept.columns, *nulls], schema=terms.schema)


def _candidates(
    terms: JoinTerms,
    probing: SortedRun,
    run: SortedRun,
    side: Literal["left", "right"],
    earliest_us: int,
) -> Iterator[tuple[Rows, Rows]]:
    """Pairs with equal places within the bound, a bounded number at a time."""
    bound = terms.bound
    reach = (bound.lower_us, bound.upper_us)
    if side == "right":
        reach = (-bound.upper_us, -bound.lower_us)
    starts, counts = find_partners(
        probing.places, probing.times, run.places, run.times, *reach, earliest_us
    )
    for first, stop in portions(counts, PAIRS_AT_ONCE):
        yield pair_up(probing.row_numbers, starts, counts, run.row_numbers, first, stop)


def _match(
    terms: JoinTerms, left: pa.RecordBatch, mine: Rows, right: pa.RecordBatch, theirs: Rows
) -> tuple[pa.RecordBatch, pa.RecordBatch, Rows]:
    """The rows of pairs whose keys are equal, not only their hashes; and which left rows they are.

    All columns are taken at once, before it is known that keys are equal: they nearly always are.
    """
    left, right = left.take(pa.array(mine)), right.take(pa.array(theirs))
    keys = zip(terms.left.keys, terms.right.keys, terms.key_types, strict=True)
    for left_key, right_key, type in keys:
        same = _compare(_as(left.column(left_key), type), _as(right.column(right_key), type))
        if not same.all():
            kept = pa.array(same)
            left, right, mine = left.filter(kept), right.filter(kept), mine[same]
    return left, right, mine


def _as(column: pa.Array, type: pa.DataType) -> pa.Array:
    return column if column.type == type else column.cast(type, safe=False)


def _compare(keys: pa.Array, others: pa.Array) -> Flags:
    """Which keys are equal; Arrow has it that NaN is not, Spark and its users that it is."""
    same: Flags = pc.equal(keys, others).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(keys.type):
        unknown = pc.and_(pc.is_nan(keys), pc.is_nan(others))
        same = same | unknown.to_numpy(zero_copy_only=False)
    return same


def _put_together(terms: JoinTerms, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.Table:
    columns = [left.column(name) for name in terms.left.columns]
    columns += [right.column(name) for name in terms.right.columns]
    return pa.Table.from_arrays(columns, schema=terms.schema)


def _check_condition(terms: JoinTerms, found: pa.Table) -> Flags:
    """Which joined rows the residual condition is true of."""
    assert terms.residual is not None
    answer = terms.residual(found)
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    if answer.type != pa.bool_() or len(answer) != found.num_rows:
        raise RunError(
            f"a join's condition gave {len(answer)} values of type {answer.type} "
            f"for {found.num_rows} rows",
            hint="It has to give one boolean a row.",
        )
    flags: Flags = pc.fill_null(answer, False).to_numpy(zero_copy_only=False)
    return flags
