"""States of slices as rows of a stream: what they look like, and what is put together of them."""

from __future__ import annotations

from math import nan

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.feeds.arrow import ARROW_TYPES
from penstock.kernels.aggregates import kind_of
from penstock.kernels.merged import Merged, pack, unpack
from penstock.kernels.segments import Segments
from penstock.kernels.slices import sliced_states
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Column
from penstock.model.operators import Aggregate, Input
from penstock.model.schema import Schema, Shape
from penstock.model.types import DataType
from penstock.model.windows import AnyWindow, SessionWindow, Window

ROWS = Input("rows", Shape.timed(Schema.parse("ts timestamp, k string, v bigint, x double"), "ts"))
X = (Column("x"),)
VALUES = [None, nan, float("inf"), -0.0, 0.0, 0.1, -0.1, 1e17, -1e17, 1e-300]


def aggregate(window: AnyWindow, *calls: tuple[str, AggregateCall]) -> Aggregate:
    return Aggregate("sums", ROWS, window, (("k", Column("k")),), calls)


def test_keys_bounds_and_states_are_columns() -> None:
    calls = (
        ("n", AggregateCall("count")),
        ("total", AggregateCall("sum", (Column("v"),))),
        ("mean", AggregateCall("avg", X)),
        ("first", AggregateCall("min_by", (Column("k"), Column("ts")))),
    )
    found = sliced_states(aggregate(Window(60, 40), *calls))
    assert found is not None
    assert str(found.shape.schema) == (
        "k string, window_start timestamp, window_end timestamp, n_0 bigint, "
        "total_0 bigint, total_1 bigint, total_2 bigint, mean_0 binary, mean_1 bigint, "
        "first_0 string, first_1 timestamp"
    )
    assert found.states["total"] == ("total_0", "total_1", "total_2")
    assert [(time.column, time.behind_us) for time in found.shape.times] == [
        ("window_end", 0),
        ("window_start", 20),
    ]


def test_a_name_that_is_taken_gets_longer() -> None:
    keys = (("n_0", Column("k")),)
    found = sliced_states(
        Aggregate("sums", ROWS, Window.of(60), keys, (("n", AggregateCall("count")),))
    )
    assert found is not None and found.states == {"n": ("n_0_",)}


@pytest.mark.parametrize(
    ("window", "call"),
    [
        (SessionWindow(60), AggregateCall("count")),
        (Window.of(60), AggregateCall("approx_count_distinct", X)),
    ],
)
def test_some_have_none(window: AnyWindow, call: AggregateCall) -> None:
    assert sliced_states(aggregate(window, ("n", call))) is None


def grouped(codes: list[int]) -> Segments:
    order = np.argsort(np.array(codes), kind="stable")
    _, counts = np.unique(np.array(codes), return_counts=True)
    return Segments(order, np.concatenate(([0], np.cumsum(counts))))


@given(
    st.sampled_from(["sum", "avg", "variance", "stddev", "count", "min", "max"]),
    st.lists(st.tuples(st.sampled_from(VALUES), st.integers(0, 3)), min_size=1, max_size=30),
)
@tried(60)
def test_states_that_went_through_a_stream_are_as_good_as_rows(
    function: str, rows: list[tuple[float | None, int]]
) -> None:
    kind = kind_of(function, [DataType.DOUBLE])
    assert kind is not None
    values = pa.array([value for value, _ in rows], ARROW_TYPES[DataType.DOUBLE])
    parts = kind.begin([values], grouped([group for _, group in rows]))
    given = [pack(part) for part in parts]
    assert not any(pa.types.is_list(column.type) for column in given)
    # A part of a column, as files are read in pieces.
    padded = [pa.concat_arrays([column[:1], column])[1:] for column in given]
    merged = Merged(kind).begin(padded, Segments.whole(len(padded[0])))
    whole = kind.begin([values], Segments.whole(len(rows)))
    assert repr(kind.finish(merged).to_pylist()) == repr(kind.finish(whole).to_pylist())


def test_nothing_goes_through_a_stream_as_well() -> None:
    empty = pa.array([], pa.list_(pa.int64()))
    assert unpack(pack(empty)).to_pylist() == []
