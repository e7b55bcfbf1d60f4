"""The kernel against the plain meaning of a join, whatever the rows and however they are cut."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.window_join.streams import (
    Row,
    cut,
    expected,
    in_time,
    kernel_rows,
    table,
    terms_of,
)
from laws import tried
from penstock.errors import InputError, RunError
from penstock.kernels.window_join import JoinOffset, RunCache, SideOffset, join_batch, runs
from penstock.kernels.window_join.memory_batches import MemoryBatches
from penstock.model.windows import TimeBound

INT, TEXT, REAL = pa.int64(), pa.string(), pa.float64()
KEYS = {
    INT: st.sampled_from([None, 0, 1, -1, 2**62]),
    TEXT: st.sampled_from([None, "", "a", "b", "ab", "\x00", "a longer key", "a longer kez"]),
    REAL: st.sampled_from([None, 0.0, -0.0, 1.5, float("nan"), -float("nan"), float("inf")]),
    pa.bool_(): st.sampled_from([None, True, False]),
    pa.date32(): st.sampled_from([None, 0, 1]),
}
SHAPES = [(INT,), (TEXT,), (REAL,), (pa.bool_(), INT), (TEXT, INT), (pa.date32(), TEXT), ()]


@st.composite
def streams(draw: st.DrawFn, types: Sequence[pa.DataType]) -> list[Row]:
    """Rows of a side, numbered, at few different times and keys so that many are equal."""
    times = st.one_of(st.integers(0, 40), st.just(20), st.none())
    rows = draw(st.lists(st.tuples(times, *(KEYS[type] for type in types)), max_size=25))
    return [(*row, number) for number, row in enumerate(rows)]


@st.composite
def bounds(draw: st.DrawFn) -> TimeBound:
    """Windows of both sides, of one, none, or a bound that lies off to one side."""
    first, second = draw(st.integers(-30, 30)), draw(st.integers(-30, 30))
    return TimeBound(min(first, second), max(first, second))


sizes = st.lists(st.integers(0, 9), max_size=9)
kinds = st.sampled_from(["inner", "left"])


@given(st.data(), bounds(), kinds, st.sampled_from([3, 100]), sizes, sizes)
@tried(150)
def test_any_rows_in_any_batches(
    data: st.DataObject, bound: TimeBound, kind: str, lateness: int, lefts: list[int], rights: list
) -> None:
    types = data.draw(st.sampled_from(SHAPES))
    terms = terms_of(types, bound, kind=kind)
    left, right = (in_time(data.draw(streams(types)), lateness) for _ in range(2))
    assert kernel_rows(terms, cut(left, lefts), cut(right, rights), lateness) == expected(
        terms, left, right
    )


@given(st.data(), bounds(), kinds, sizes, sizes)
@tried(50)
def test_sides_at_different_paces(
    data: st.DataObject, bound: TimeBound, kind: str, lefts: list[int], rights: list[int]
) -> None:
    """One side may be read far ahead of the other, or several batches at a time."""
    terms = terms_of((INT,), bound, kind=kind)
    left, right = (in_time(data.draw(streams((INT,))), 10) for _ in range(2))
    left_batches, right_batches = cut(left, lefts), cut(right, rights)
    ends = (len(left_batches), len(right_batches))
    stops = [
        sorted(data.draw(st.lists(st.integers(0, end), min_size=4, max_size=4))) for end in ends
    ]
    steps = [*zip(*stops, strict=True), ends]
    assert kernel_rows(terms, left_batches, right_batches, 10, steps=steps) == expected(
        terms, left, right
    )


@given(st.data(), bounds(), kinds, sizes)
@tried(50)
def test_residual_conditions(
    data: st.DataObject, bound: TimeBound, kind: str, sizes: list[int]
) -> None:
    def odd_sum(rows: pa.Table) -> pa.Array:
        """True where the numbers' sum is odd, null where it is 4: null is not true."""
        sums = pc.add(rows["l_n"], rows["r_n"])
        odd = pc.equal(pc.bit_wise_and(sums, 1), 1)
        return pc.if_else(pc.equal(sums, 4), pa.scalar(None, pa.bool_()), odd)

    terms = terms_of((INT,), bound, kind=kind, residual=odd_sum)
    left, right = data.draw(streams((INT,))), data.draw(streams((INT,)))
    found = kernel_rows(terms, cut(left, sizes), cut(right, sizes), 100)
    assert found == expected(terms, left, right, lambda one, other: (one[-1] + other[-1]) % 2 == 1)


@given(st.data(), bounds(), kinds, sizes)
@tried(50)
def test_groups_change_nothing(
    data: st.DataObject, bound: TimeBound, kind: str, sizes: list[int]
) -> None:
    types = data.draw(st.sampled_from([(INT,), (TEXT, INT), (TEXT,)]))
    terms = terms_of(types, bound, kind=kind, groups=60)
    left, right = data.draw(streams(types)), data.draw(streams(types))
    assert kernel_rows(terms, cut(left, sizes), cut(right, sizes), 100) == expected(
        terms, left, right
    )


@given(st.data(), bounds(), kinds, sizes)
@tried(50)
def test_equal_hashes_of_different_keys(
    data: st.DataObject, bound: TimeBound, kind: str, sizes: list[int]
) -> None:
    """Hashes of two bits make most keys collide: only equal keys are joined all the same."""
    exact = runs.hash_keys

    def coarse(*given: object) -> object:
        hashes, complete = exact(*given)
        return hashes & 3, complete

    types = data.draw(st.sampled_from(SHAPES))
    terms = terms_of(types, bound, kind=kind)
    left, right = data.draw(streams(types)), data.draw(streams(types))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "hash_keys", coarse)
        found = kernel_rows(terms, cut(left, sizes), cut(right, sizes), 100)
    assert found == expected(terms, left, right)


@pytest.mark.parametrize("right", [pa.int64(), pa.float64()])
def test_keys_of_different_types_are_compared_as_one(right: pa.DataType) -> None:
    terms = terms_of((pa.int32(),), TimeBound(-5, 5), right_types=(right,))
    left = [(0, 1, 0), (0, 2, 1), (0, -3, 2)]
    others = [(1, 2, 0), (2, -3, 1), (3, 7, 2)]
    assert kernel_rows(terms, [left], [others], 0) == {(1, 0): 1, (2, 1): 1}


def test_large_integers_are_compared_with_doubles_as_spark_does() -> None:
    terms = terms_of((INT,), TimeBound(0, 0), (REAL,))
    left, right = [(5, 2**53 + 1, 0), (5, 2**53 - 1, 1)], [(5, float(2**53), 0)]
    assert kernel_rows(terms, [left], [right], 0) == {(0, 0): 1}


@pytest.mark.parametrize("keys", ["equal", "distinct"])
def test_all_keys_equal_or_distinct(keys: str) -> None:
    terms = terms_of((INT,), TimeBound(-50, 20), kind="left")
    rows = [(at % 97, 0 if keys == "equal" else at, at) for at in range(300)]
    found = kernel_rows(terms, cut(rows, [70] * 4), cut(rows[::-1], [70] * 4), 1_000)
    assert found == expected(terms, rows, rows[::-1])


def test_a_hot_key_is_put_together_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pairs a key makes, few of them are held at a time."""
    monkeypatch.setattr("penstock.kernels.window_join.pairs.PAIRS_AT_ONCE", 500)
    terms = terms_of((INT,), TimeBound(-100, 100))
    rows = [(at, 7, at) for at in range(100)]
    sides = [
        MemoryBatches(one.time, [table(one, rows)], one.time) for one in (terms.left, terms.right)
    ]
    after = JoinOffset(SideOffset(0, 1), SideOffset(0, 1))
    found = list(join_batch(terms, *sides, JoinOffset(), after))
    assert sum(one.num_rows for one in found) == 10_000
    assert max(one.num_rows for one in found) <= 500


def test_other_units_of_time() -> None:
    terms = terms_of((INT,), TimeBound(0, 2_000))
    left = MemoryBatches("l", [table(terms.left, [(5_000, 1, 0)])], "l_ts")
    schema = terms.right.schema.set(0, pa.field("r_ts", pa.timestamp("ms", "UTC")))
    rows = pa.Table.from_pydict({"r_ts": [7, 8], "r_k0": [1, 1], "r_n": [0, 1]}, schema)
    right = MemoryBatches("r", [rows], "r_ts")
    assert right.latest_us(0) == 8_000
    terms = type(terms)(terms.left, type(terms.right)(schema, ("r_k0",), "r_ts"), terms.bound)
    after = JoinOffset(SideOffset(0, 1), SideOffset(0, 1))
    (found,) = join_batch(terms, left, right, JoinOffset(), after)
    assert found["r_n"].to_pylist() == [0]


def test_what_left_the_window_is_not_read() -> None:
    """Batches that the watermarks have passed are never opened again."""
    terms = terms_of((INT,), TimeBound(-10, 10))
    rows = [[(at * 10, 1, at)] for at in range(20)]
    read: list[int] = []

    class Watched(MemoryBatches):
        def read(self, number: int) -> pa.Table:
            read.append(number)
            return super().read(number)

    tables = [table(terms.left, batch) for batch in rows]
    left = Watched("l", tables, "l_ts")
    right = MemoryBatches("r", [table(terms.right, batch) for batch in rows], "r_ts")
    before = JoinOffset(SideOffset(17, 19, 180), SideOffset(17, 19, 180))
    after = JoinOffset(SideOffset(17, 20, 190), SideOffset(17, 20, 190))
    list(join_batch(terms, left, right, before, after))
    assert sorted(read) == [17, 18, 19]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_row_on_the_edge_of_the_window_is_kept_for_one_on_the_watermark(side: str) -> None:
    """A later row may be as old as the watermark, and both ends of a window count."""
    terms = terms_of((INT,), TimeBound(-10, 10))
    old, young = [[(10, 1, 0)], []], [[(30, 1, 0)], [(20, 1, 1)]]
    if side == "left":
        assert kernel_rows(terms, old, young, 10) == {(0, 1): 1}
    else:
        assert kernel_rows(terms, young, old, 10) == {(1, 0): 1}


def test_offsets_never_go_back() -> None:
    terms = terms_of((INT,), TimeBound(0, 1))
    side = MemoryBatches("s", [], "l_ts")
    ahead = JoinOffset(SideOffset(0, 2, 50), SideOffset())
    with pytest.raises(InputError, match="left side of a join would go back"):
        list(join_batch(terms, side, side, ahead, JoinOffset()))
    with pytest.raises(InputError, match="window of batches 3 to 2"):
        SideOffset(3, 2)


@pytest.mark.parametrize("answer", [pa.array([True]), pa.array([1, 1])])
def test_a_condition_that_is_none(answer: pa.Array) -> None:
    terms = terms_of((INT,), TimeBound(0, 9), residual=lambda rows: answer)
    rows = [(1, 1, 0), (2, 1, 1)]
    with pytest.raises(RunError, match="one boolean a row"):
        kernel_rows(terms, [rows[:1]], [rows], 0)


def test_runs_do_not_change_the_result_but_save_the_work() -> None:
    """A cache that forgets everything, one that keeps everything: the same rows."""
    terms = terms_of((INT,), TimeBound(-30, 30), kind="left")
    rows = [(at, at % 5, at) for at in range(200)]
    made: list[RunCache] = []

    def forgetful() -> RunCache:
        cache = RunCache()
        cache.get = lambda side, batches: None  # type: ignore[method-assign]
        made.append(cache)
        return cache

    def keeping() -> RunCache:
        made.append(RunCache())
        return made[-1]

    batches = cut(rows, [10] * 20)
    first = kernel_rows(terms, batches, batches, 10, forgetful)
    assert first == kernel_rows(terms, batches, batches, 10, keeping) == expected(terms, rows, rows)
    assert made[0].made > 3 * made[1].made
