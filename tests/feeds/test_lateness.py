"""Late rows: the fast way against a plain loop."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws import tried
from penstock.feeds.lateness import Sifted, is_too_far_ahead, sift

MOMENT = pa.timestamp("us", tz="UTC")
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999


def table(times: list[int | None]) -> pa.Table:
    columns = {"ts": pa.array(times, MOMENT), "n": pa.array(range(len(times)), pa.int64())}
    return pa.table(columns)


def kept(result: Sifted) -> list[int]:
    return result.kept["n"].to_pylist()


def plain(
    times: list[int | None], lateness_us: int, high_us: int | None
) -> tuple[list[int], list[tuple[int, int]], list[int], int | None]:
    """One row after the other, as the rule is written; late rows with how far time had come."""
    in_time, late, untimed = [], [], []
    for at, time in enumerate(times):
        if time is None:
            untimed.append(at)
            continue
        high_us = time if high_us is None else max(time, high_us)
        if time < high_us - lateness_us:
            late.append((at, high_us))
        else:
            in_time.append(at)
    return in_time, late, untimed, high_us


times_us = st.lists(st.one_of(st.none(), st.integers(FIRST_US, LAST_US)), max_size=30)
close_times_us = st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=30)
lateness = st.one_of(st.integers(0, 20), st.integers(0, 10**16))
marks = st.one_of(st.none(), st.integers(0, 40), st.integers(FIRST_US, LAST_US))


@tried(80)
@given(times=st.one_of(times_us, close_times_us), lateness_us=lateness, high_us=marks)
def test_sifting_is_the_plain_loop(
    times: list[int | None], lateness_us: int, high_us: int | None
) -> None:
    in_time, late, untimed, reached_us = plain(times, lateness_us, high_us)
    result = sift(table(times), "ts", lateness_us, high_us)
    assert kept(result) == in_time
    set_aside = zip(result.late["n"].to_pylist(), result.late_after_us, strict=True)
    assert list(set_aside) == late
    assert result.untimed["n"].to_pylist() == untimed
    assert result.high_water_us == reached_us
    assert result.kept.schema == result.late.schema == table([]).schema


@settings(database=None, deadline=None)
@given(times=close_times_us, lateness_us=st.integers(0, 20), data=st.data())
def test_how_rows_are_cut_does_not_matter(
    times: list[int | None], lateness_us: int, data: st.DataObject
) -> None:
    rows = table(times)
    whole = sift(rows, "ts", lateness_us, None)
    edges = sorted(data.draw(st.lists(st.integers(0, len(times)), max_size=5)))
    high_us: int | None = None
    in_time: list[int] = []
    for low, high in zip([0, *edges], [*edges, len(times)], strict=True):
        result = sift(rows.slice(low, high - low), "ts", lateness_us, high_us)
        in_time += kept(result)
        high_us = result.high_water_us
    assert in_time == kept(whole)
    assert high_us == whole.high_water_us


def test_a_row_just_as_late_as_allowed_counts() -> None:
    """As the manual says: the bound itself counts, a microsecond further behind does not."""
    result = sift(table([30, 25, 24]), "ts", 5, None)
    assert kept(result) == [0, 1]
    assert result.late["n"].to_pylist() == [2]


def test_rows_in_several_chunks_are_one_sequence() -> None:
    rows = pa.concat_tables([table([10, 30]), table([12, 29])])
    assert kept(sift(rows, "ts", 5, None)) == [0, 1, 1]


@pytest.mark.parametrize(("time", "late"), [(94, True), (95, False), (100, False), (200, False)])
def test_a_row_exactly_as_late_as_allowed_is_in_time(time: int, late: bool) -> None:
    assert (kept(sift(table([time]), "ts", 5, 100)) == []) is late


def test_rows_without_a_time_are_not_late_and_move_nothing() -> None:
    result = sift(table([None, None]), "ts", 5, None)
    assert (result.late.num_rows, result.untimed.num_rows) == (0, 2)
    assert result.high_water_us is None
    assert sift(table([None]), "ts", 5, 7).high_water_us == 7


def test_no_rows_move_nothing() -> None:
    assert sift(table([]), "ts", 5, 7).high_water_us == 7


def test_a_late_row_moves_nothing() -> None:
    assert sift(table([10]), "ts", 5, 100).high_water_us == 100


def plainly_ahead(
    times: list[int | None], ahead_us: int, clock_us: int, latest_us: int | None
) -> list[bool]:
    """One row after the other, as the rule is written."""
    found = []
    for time in times:
        reached_us = clock_us if latest_us is None else max(clock_us, latest_us)
        found.append(time is not None and time > reached_us + ahead_us)
        if time is not None and not found[-1]:
            latest_us = time if latest_us is None else max(latest_us, time)
    return found


@tried(80)
@given(
    times=st.one_of(times_us, close_times_us),
    ahead_us=st.one_of(st.integers(0, 8), st.integers(0, 10**17)),
    clock_us=st.integers(-5, 40),
    latest_us=marks,
)
def test_rows_too_far_ahead_are_those_of_the_plain_loop(
    times: list[int | None], ahead_us: int, clock_us: int, latest_us: int | None
) -> None:
    found = is_too_far_ahead(table(times), "ts", ahead_us, clock_us, latest_us)
    assert found.tolist() == plainly_ahead(times, ahead_us, clock_us, latest_us)


@pytest.mark.parametrize(
    ("clock_us", "latest_us", "ahead"),
    [(100, None, [False, True]), (0, 100, [False, True]), (101, 0, [False, False])],
)
def test_a_row_exactly_as_far_ahead_as_allowed_counts(
    clock_us: int, latest_us: int | None, ahead: list[bool]
) -> None:
    """Both are looked at alone, so that the first does not make room for the second."""
    rows = [table([105]), table([106])]
    found = [is_too_far_ahead(row, "ts", 5, clock_us, latest_us).tolist() for row in rows]
    assert found == [[one] for one in ahead]


def test_rows_that_count_make_room_for_those_exactly_so_far_ahead_of_them() -> None:
    times = [3, 8, 14, 13, 18, 24]
    found = is_too_far_ahead(table(times), "ts", 5, 0, None).tolist()
    assert found == [False, False, True, False, False, True]
