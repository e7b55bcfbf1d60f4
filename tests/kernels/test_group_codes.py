"""Groups by numbers against groups by values, and quick comparisons against Arrow's."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.comparisons import Comparison
from penstock.kernels.expressions import evaluate
from penstock.kernels.group_codes import Codes, codes_of, codes_of_numbers, combine, group_chosen
from penstock.kernels.segments import Segments, group_rows, normalize_doubles
from penstock.model.expressions import Call, Column, Literal
from penstock.model.schema import Schema

_LIMIT = 2**63
_INTEGERS = st.one_of(
    st.integers(-3, 3), st.integers(-_LIMIT, _LIMIT - 1), st.sampled_from([-_LIMIT, _LIMIT - 1])
)
_DOUBLES = st.one_of(st.sampled_from([0.0, -0.0, float("nan"), float("inf")]), st.floats())
_COLUMNS = st.sampled_from(
    [
        (pa.int64(), _INTEGERS),
        (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
        (pa.string(), st.sampled_from(["", "a", "b", "é"])),
        (pa.float64(), _DOUBLES),
        (pa.bool_(), st.booleans()),
        (pa.timestamp("us", tz="UTC"), st.integers(-(10**15), 10**15)),
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[pa.Array], np.ndarray]:
    rows = draw(st.integers(0, 30))
    columns = []
    for _ in range(draw(st.integers(0, 3))):
        type, values = draw(_COLUMNS)
        element = st.one_of(st.none(), values) if draw(st.booleans()) else values
        given = draw(st.lists(element, min_size=rows, max_size=rows))
        column = pa.array(given, type)
        columns.append(normalize_doubles(column) if type == pa.float64() else column)
    chosen = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    return columns, np.array(chosen, bool)


@given(tables())
@tried(300)
def test_groups_are_those_by_values_in_the_order_of_their_first_rows(
    given_rows: tuple[list[pa.Array], np.ndarray],
) -> None:
    columns, chosen = given_rows
    found = group_chosen(combine(map(codes_of, columns), len(chosen)), chosen)
    rows = np.flatnonzero(chosen)
    plain = group_rows([column.take(pa.array(rows)) for column in columns], len(rows))
    groups = _rows_of(found)
    assert groups == sorted(_rows_of(Segments(rows[plain.order], plain.bounds)))
    assert all(group == sorted(group) for group in groups)


def _rows_of(segments: Segments) -> list[list[int]]:
    bounds = segments.bounds.tolist()
    return [segments.order[low:high].tolist() for low, high in itertools.pairwise(bounds)]


@given(st.lists(st.tuples(_INTEGERS, _INTEGERS), max_size=30))
@tried(100)
def test_numbers_however_far_apart_have_small_codes(pairs: list[tuple[int, int]]) -> None:
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    codes = combine((codes_of_numbers(column.copy()) for column in columns.T), len(pairs))
    assert codes.size <= max(4_096, 4 * len(pairs))
    assert ((codes.numbers >= 0) & (codes.numbers < codes.size)).all()
    assert len(set(codes.numbers.tolist())) == len(set(pairs))


def test_many_parts_stay_small() -> None:
    parts = [Codes(np.arange(100) % 50, 4_000) for _ in range(20)]
    codes = combine(parts, 100)
    assert codes.size <= 4_096
    assert len(set(codes.numbers.tolist())) == 50


_SCHEMA = Schema.parse("v bigint, n int")


@given(
    st.lists(st.one_of(st.none(), _INTEGERS), max_size=20),
    st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    _INTEGERS,
)
@tried(200)
def test_comparisons_are_those_of_arrow(values: list[int | None], name: str, number: int) -> None:
    small = [value if value is None or abs(value) < 2**31 else None for value in values]
    rows = pa.table({"v": pa.array(values, pa.int64()), "n": pa.array(small, pa.int32())})
    for column in ("v", "n", "V"):
        expression = Call(name, (Column(column), Literal(number)))
        comparison = Comparison.of(expression, _SCHEMA)
        assert comparison is not None
        met = comparison.met(BatchRows(rows, _SCHEMA)).tolist()
        assert met == pc.fill_null(evaluate(expression, rows, _SCHEMA), False).to_pylist()


@pytest.mark.parametrize("literal", [True, None, 0.5, "1"])
def test_what_is_no_comparison_of_integers(literal: object) -> None:
    for column in ("v", "n"):
        try:
            found = Comparison.of(Call("=", (Column(column), Literal(literal))), _SCHEMA)  # type: ignore[arg-type]
        except Exception:  # such a comparison cannot be written
            continue
        assert found is None
