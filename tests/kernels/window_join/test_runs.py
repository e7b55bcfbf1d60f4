"""Runs: sorted, merged, sliced, kept in files that tell damage."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.window_join.streams import cut, expected, kernel_rows, side, table, terms_of
from laws import tried
from penstock.balance.groups.directory import Bucket, SizeLimits, SplitDirectory, tune
from penstock.kernels.group_numbers import group_numbers
from penstock.kernels.window_join import RunCache
from penstock.kernels.window_join.mini_partitions import cell_rows, slice_of
from penstock.kernels.window_join.ranges import BatchRange, cover
from penstock.kernels.window_join.run_files import read_run, write_run
from penstock.kernels.window_join.runs import SortedRun
from penstock.kernels.window_join.sorting import order_by
from penstock.model.partition_groups import PartitionGroups
from penstock.model.windows import TimeBound

TERMS = terms_of((pa.int64(), pa.string()), TimeBound(-20, 20), groups=4)
LAYOUT = TERMS.layout(TERMS.left)

rows_of_a_batch = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from([None, 0, 1, 2, 2**40]),
        st.sampled_from([None, "", "x", "y"]),
        st.integers(0, 99),
    ),
    max_size=30,
)


def _same(one: SortedRun, other: SortedRun) -> bool:
    return one.rows.equals(other.rows) and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("places", "times", "row_numbers")
    )


@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(-(2**61), 2**61)), max_size=40),
    st.lists(st.tuples(st.sampled_from([0, 1, 2**63]), st.integers(0, 3)), max_size=40),
)
@tried(100)
def test_order(wide: list[tuple[int, int]], tied: list[tuple[int, int]]) -> None:
    for pairs in (wide, tied, wide + tied):
        places = np.array([place for place, _ in pairs], np.uint64)
        times = np.array([time for _, time in pairs], np.int64)
        assert order_by(places, times).tolist() == np.lexsort((times, places)).tolist()


@given(st.lists(rows_of_a_batch, min_size=2, max_size=2))
@tried(100)
def test_merging_is_as_if_all_had_come_at_once(batches: list[list]) -> None:
    parts = [SortedRun.of(table(TERMS.left, rows), LAYOUT) for rows in batches]
    whole = SortedRun.of(table(TERMS.left, [row for rows in batches for row in rows]), LAYOUT)
    assert _same(SortedRun.merge(*parts), whole)


@given(rows_of_a_batch)
@tried(50)
def test_a_run_comes_back_from_its_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list
) -> None:
    path = tmp_path_factory.mktemp("runs") / "one.run"
    run = SortedRun.of(table(TERMS.left, rows), LAYOUT)
    write_run(run, path)
    back = read_run(path)
    assert back is not None and _same(run, back)
    assert back.rows.schema == run.rows.schema


def test_any_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "one.run"
    write_run(SortedRun.of(table(TERMS.left, [(1, 2, "x", 3)]), LAYOUT), path)
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert read_run(path) is None, at
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        assert read_run(path) is None, size
    assert read_run(tmp_path / "missing.run") is None


@given(rows_of_a_batch)
@tried(50)
def test_groups_and_mini_partitions_are_slices(rows: list) -> None:
    """Every indexed row is in exactly one slice, that of its group and of its hash's beginning."""
    run = SortedRun.of(table(TERMS.left, rows), LAYOUT)
    numbers = group_numbers(run.rows, PartitionGroups(LAYOUT.keys, 4))
    seen: list[int] = []
    for group in range(4):
        cells = cell_rows([run, run], group, 4, bits=3)
        directory = tune(SplitDirectory(), cells, SizeLimits(1)).directory
        for bucket in directory.buckets:
            part = slice_of(run, bucket, group, 4)
            assert part.rows is run.rows and part.places.base is not None, "nothing is copied"
            assert all(numbers[part.row_numbers] == group)
            assert 2 * len(part.places) == sum(cells[at] for at in bucket.entries(3))
            seen += part.row_numbers.tolist()
    assert sorted(seen) == sorted(run.row_numbers.tolist())


def test_hashes_of_a_group_are_spread_over_its_mini_partitions() -> None:
    """The hash that splits is independent of the checksum that groups."""
    layout = terms_of((pa.int64(),), TimeBound(0, 1), groups=60).layout(side("l", [pa.int64()]))
    run = SortedRun.of(
        table(side("l", [pa.int64()]), [(0, key, key) for key in range(20_000)]), layout
    )
    counts = np.array([cell_rows([run], group, 60, bits=3) for group in range(60)])
    assert counts.sum() == 20_000
    expected_rows = 20_000 / 480
    assert ((counts - expected_rows) ** 2 / expected_rows).sum() < 480 + 6 * np.sqrt(2 * 480)


@given(st.integers(0, 300), st.integers(0, 300))
@tried(200)
def test_ranges_cover_a_window_with_few_aligned_runs(first: int, length: int) -> None:
    ranges = cover(first, first + length)
    assert [one.stop for one in ranges[:-1]] == [one.start for one in ranges[1:]]
    for one in ranges:
        size = one.stop - one.start
        assert size & (size - 1) == 0 and one.start % size == 0
    if length:
        assert ranges[0].start <= first < ranges[0].stop and ranges[-1].stop == first + length
        assert first - ranges[0].start <= length // 2
        assert len(ranges) <= 4 + length.bit_length()


def test_damaged_and_lost_files_change_nothing(tmp_path: Path) -> None:
    """Whatever happens to files between two batches, the rows are those of the plain meaning."""
    terms = terms_of((pa.int64(),), TimeBound(-60, 60), kind="left")
    rows = [(at, at % 7, at) for at in range(240)]
    caches: list[RunCache] = []
    chance = Random(1)
    hurt = 0

    class Unlucky(RunCache):
        """Each life of it finds one file damaged and one gone."""

        def retire(self, side: str, first: int) -> None:
            nonlocal hurt
            super().retire(side, first)
            self._open.clear()
            files = sorted(tmp_path.glob("*.run"))
            if len(files) > 3:
                damaged, lost = chance.sample(files, 2)
                damaged.write_bytes(b"\xff" + damaged.read_bytes()[1:])
                lost.unlink()
                hurt += 1

    def unlucky() -> RunCache:
        caches.append(Unlucky(tmp_path))
        return caches[-1]

    batches = cut(rows, [10] * 23)
    assert kernel_rows(terms, batches, batches, 5, unlucky) == expected(terms, rows, rows)
    assert hurt > 10 and len(caches[0].damaged) > 5


def test_the_window_levels_off(tmp_path: Path) -> None:
    """Files and memory hold a window, however many windows have passed."""
    terms = terms_of((pa.int64(),), TimeBound(-50, 50))
    sizes: list[tuple[int, int]] = []

    class Watched(RunCache):
        def retire(self, side: str, first: int) -> None:
            super().retire(side, first)
            files = sum(path.stat().st_size for path in tmp_path.glob("*.run"))
            sizes.append((self.size_bytes(), files))

    batches = [[(at * 10 + row, row, row) for row in range(10)] for at in range(60)]
    kernel_rows(terms, batches, batches, 0, lambda: Watched(tmp_path))
    for memory, files in sizes[60:-2]:
        assert memory <= 2 * max(one for one, _ in sizes[:40])
        assert files <= 2 * max(one for _, one in sizes[:40])


def test_another_layout_has_other_files(tmp_path: Path) -> None:
    """Runs sorted for sixty groups do not pass for runs sorted for one."""
    rows = [(at, at % 7, at) for at in range(50)]
    batches = cut(rows, [10] * 4)
    for groups in (1, 60):
        terms = terms_of((pa.int64(),), TimeBound(-60, 60), groups=groups)
        found = kernel_rows(terms, batches, batches, 5, lambda: RunCache(tmp_path))
        assert found == expected(terms, rows, rows)
    assert BatchRange(0, 1) < BatchRange(0, 2)
    assert Bucket() == Bucket(0, 0)
