"""Reading results: whole batches, from where one was, until the end."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from control.rows import RowWriter
from penstock.channels.channel import Channel
from penstock.control.results import Results, read_results
from penstock.errors import RunError


@pytest.fixture
def writer(tmp_path: Path) -> RowWriter:
    return RowWriter(tmp_path / "peaks")


def never(_: float) -> None:
    raise AssertionError("there is nothing to wait for")


def read(
    writer: RowWriter,
    after: int | None = None,
    most_rows: int = 100,
    groups: set[int] | None = None,
) -> Results:
    return read_results(writer.channel, ["x"], after, most_rows, 0.0, never, groups)


def values(found: Results) -> list[object]:
    return [] if found.rows is None else found.rows["x"].to_pylist()


def test_nothing_yet(writer: RowWriter) -> None:
    assert read(writer) == Results(None, 0, False)


def test_all_from_the_oldest(writer: RowWriter) -> None:
    writer.write(1, 2)
    writer.write(3)
    found = read(writer)
    assert (values(found), found.next, found.ended) == ([1, 2, 3], 2, False)


def test_a_batch_of_several_files(writer: RowWriter) -> None:
    writer.write(1, 2, 3, 4, files=2)
    assert sorted(values(read(writer))) == [1, 2, 3, 4]  # type: ignore[type-var]


def test_only_some_groups(writer: RowWriter) -> None:
    writer.write(0, 1, 2, 3, 4, 5, files=3, in_groups=True)
    writer.write(6, 7, 8, files=3, in_groups=True)
    assert sorted(values(read(writer, groups={1, 2}))) == [1, 2, 4, 5, 7, 8]  # type: ignore[type-var]
    found = read(writer, groups={7})
    assert (values(found), found.next) == ([], 2), "who reads others goes on all the same"
    writer.write(7)
    with pytest.raises(RunError, match=r"batch 2 .* is not kept in groups"):
        read(writer, groups={1, 2})


def test_going_on(writer: RowWriter) -> None:
    for value in range(4):
        writer.write(value)
    assert values(read(writer, after=2)) == [2, 3]
    found = read(writer, after=4)
    assert (found.rows, found.next) == (None, 4)
    writer.write(4)
    assert values(read(writer, after=4)) == [4]


def test_batches_are_given_whole_and_at_least_one(writer: RowWriter) -> None:
    for batch in ([1, 2, 3], [4, 5], [6], []):
        writer.write(*batch)
    found = read(writer, most_rows=2)
    assert (values(found), found.next) == ([1, 2, 3], 1)
    found = read(writer, after=1, most_rows=3)
    assert (values(found), found.next) == ([4, 5, 6], 4)
    found = read(writer, most_rows=4)
    assert (values(found), found.next) == ([1, 2, 3], 1)


def test_empty_batches_are_passed(writer: RowWriter) -> None:
    writer.write()
    writer.write(1)
    writer.write()
    found = read(writer)
    assert (values(found), found.next) == ([1], 3)
    found = read(writer, after=2)
    assert (found.rows, found.next) == (None, 3)


def test_the_end(writer: RowWriter) -> None:
    writer.write(1)
    assert not read(writer).ended
    writer.write(2, ended=True)
    found = read(writer)
    assert (values(found), found.next, found.ended) == ([1, 2], 2, True)
    assert not read(writer, most_rows=1).ended


def test_the_end_is_told_to_those_who_come_back_after_it(writer: RowWriter) -> None:
    writer.write(1, ended=True)
    assert read(writer, after=1) == Results(None, 1, True)


def test_what_is_gone_is_passed_over(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "peaks", retained_rows=2)
    for value in range(6):
        writer.write(value)
    oldest = writer.channel.oldest()
    assert oldest > 0
    assert values(read(writer)) == [*range(oldest, 6)]
    assert values(read(writer, after=0)) == [*range(oldest, 6)]


def test_it_waits_for_something_to_come(writer: RowWriter) -> None:
    sleeps = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 3:
            writer.write(7)

    found = read_results(writer.channel, ["x"], None, 100, 60.0, sleep)
    assert values(found) == [7]
    assert len(sleeps) == 3


def test_but_not_longer_than_it_may(writer: RowWriter) -> None:
    naps: list[float] = []
    found = read_results(writer.channel, ["x"], None, 100, 0.0, naps.append)
    assert (found.rows, naps) == (None, [])


def test_not_at_all_after_the_end(writer: RowWriter) -> None:
    writer.write(1, ended=True)
    assert read_results(writer.channel, ["x"], 1, 100, 60.0, never) == Results(None, 1, True)


def test_a_damaged_manifest_is_refused_by_name(writer: RowWriter) -> None:
    writer.write(1)
    writer.channel.entry(0).write_text("{")
    with pytest.raises(RunError, match=r"the manifest .*00000000\.json is damaged"):
        read(writer)


def test_rows_freed_while_they_are_read_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RowWriter(tmp_path / "q")
    for value in range(3):
        writer.write(value)
    channel = writer.channel
    read = pq.read_table
    freed: list[range] = []

    def read_late(path: Path, columns: list[str]) -> pa.Table:
        if not freed:
            freed.append(channel.free(range(3), 2))
        return read(path, columns=columns)

    monkeypatch.setattr(pq, "read_table", read_late)
    found = read_results(channel, ["x"], 0, 100, 0.0, time.sleep)
    assert found.rows is not None
    assert (found.rows.to_pydict(), found.next) == ({"x": [2]}, 3)


def test_a_batch_freed_before_it_is_opened_is_passed_over(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "q")
    for value in range(3):
        writer.write(value)
    channel = _FreedLate(writer.channel.folder)
    found = read_results(channel, ["x"], None, 100, 60.0, never)
    assert found.rows is not None
    assert (found.rows.to_pydict(), found.next) == ({"x": [2]}, 3)


class _FreedLate(Channel):
    """Its writer frees the oldest batches just after somebody has asked for them."""

    def oldest(self) -> int:
        found = super().oldest()
        self.free(range(3), 2)
        return found


def test_only_the_columns_of_the_stream_are_given(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "q")
    writer.write(1)
    writer.write(2)
    path = writer.channel.data / "1-0.parquet"
    pq.write_table(pa.table({"more": ["a"], "x": [2]}), path)
    assert read(writer).rows.to_pydict() == {"x": [1, 2]}  # type: ignore[union-attr]


def test_rows_that_somebody_deleted(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "q")
    writer.write(1)
    (writer.channel.data / "0-0.parquet").unlink()
    with pytest.raises(RunError) as error:
        read_results(writer.channel, ["x"], None, 100, 0.0, time.sleep)
    assert str(error.value) == (
        "rows of q are missing from batch 0 on. "
        f"Somebody has deleted files in {writer.channel.data}."
    )
