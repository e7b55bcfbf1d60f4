"""Parquet files that need no change enter the channel as they are."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.channels.ingest import linking
from penstock.errors import RunError
from penstock.model.schema import Schema, Shape
from penstock.model.sources import Stream
from penstock.spark.sources.channel_reader import ChannelReader

from channels.disk import full, names
from channels.ingest.places import SHAPE, Place, S, live_until, place, run

pytestmark = pytest.mark.core


class TestParquet:
    """Files that need no change enter the channel as they are."""

    def place(self, root: Path, lateness_us: int | None = 0) -> Place:
        here = place(root, lateness_us)
        source = replace(here.stream.source, format="parquet")
        here.stream = replace(here.stream, source=source)
        return here

    def put(self, here: Place, name: str, times_s: list[int | None], **columns: pa.Array) -> Path:
        """A file whose rows have these times, in seconds, and are numbered by them."""
        times = pa.array([None if one is None else one * S for one in times_s], pa.int64())
        rows = {"ts": times.cast(pa.timestamp("us", "UTC")), "n": pa.array(times_s)} | columns
        if "n" not in columns:
            rows["n"] = rows["n"].cast(pa.int32())
        path = here.root / "in" / name
        pq.write_table(pa.table(rows), path)
        return path

    def is_linked(self, here: Place, path: Path) -> bool:
        kept = [
            here.channel.data / file.name
            for manifest in here.manifests()
            for file in manifest.files
        ]
        return any(one.samefile(path) for one in kept)

    def test_a_fitting_file_is_linked_and_outlives_its_original(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        extra = pa.array(["x", "y"])
        path = self.put(here, "a.parquet", [1, 2], extra=extra)
        run(here.start())
        assert self.is_linked(here, path)
        path.unlink()
        assert here.rows() == [1, 2]
        assert [manifest.watermark_us for manifest in here.manifests()] == [2 * S]

    def test_a_file_written_to_afterwards_is_refused(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        path = self.put(here, "a.parquet", [1, 2])
        run(here.start())
        reader = ChannelReader(here.channel, "r", None, tmp_path / "beats")
        start = reader.first()
        end = reader.latest(start)
        (task,) = reader.parts(start, end)
        assert [part.path.samefile(path) for part in task] == [True]
        other = path.read_bytes().replace(b"PAR1", b"PAR2")
        with path.open("r+b") as file:
            file.write(other)
        assert self.is_linked(here, path)
        with pytest.raises(RunError, match="written to after it arrived"):
            reader.parts(start, end)

    def test_of_a_symbolic_link_the_file_is_kept(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        path = self.put(here, "a.parquet", [1, 2])
        elsewhere = path.rename(tmp_path / "elsewhere.parquet")
        path.symlink_to(elsewhere)
        run(here.start())
        elsewhere.unlink()
        assert here.rows() == [1, 2]

    @pytest.mark.parametrize(
        ("times_s", "rows", "aside"),
        [
            ([5, 3, 6], [5, 6], {"late": 1}),
            ([5, None, 6], [5, 6], {"late": 0, "untimed": 1}),
            ([1, 2], [], {"late": 2}),
        ],
    )
    def test_late_rows_are_taken_out(
        self, tmp_path: Path, times_s: list[int | None], rows: list[int], aside: dict[str, int]
    ) -> None:
        here = self.place(tmp_path)
        self.put(here, "a.parquet", [4])
        path = self.put(here, "b.parquet", times_s)
        run(here.start())
        assert here.rows() == [4, *rows]
        assert not self.is_linked(here, path)
        assert here.letters.counts() == {"malformed": 0, **aside}

    def test_other_types_are_cast(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        path = self.put(here, "a.parquet", [1, 2], n=pa.array(["1", "x"]))
        run(here.start())
        assert here.rows() == [1]
        assert not self.is_linked(here, path)
        assert here.reasons() == ["n: 'x' is no int"]

    def test_impossible_times_are_set_aside(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        self.put(here, "a.parquet", [1, 10**12, 2], n=pa.array([1, 9, 2], pa.int32()))
        run(here.start())
        assert here.rows() == [1, 2]
        assert here.letters.counts() == {"malformed": 1, "late": 0}

    def test_impossible_times_of_other_columns_are_set_aside_too(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        schema = Schema.parse("ts timestamp, n int, seen timestamp, day date")
        here.stream = replace(here.stream, shape=Shape.timed(schema, "ts"))
        possible, impossible = 10**15, 10**18
        seen = pa.array([possible, impossible, None, possible], pa.timestamp("us", "UTC"))
        day = pa.array([0, 0, None, 3_000_000], pa.date32())
        path = self.put(here, "a.parquet", [1, 2, 3, 4], seen=seen, day=day)
        run(here.start())
        assert here.rows() == [1, 3]
        assert not self.is_linked(here, path)
        assert here.letters.counts() == {"malformed": 2, "late": 0}

    @pytest.mark.parametrize("column", [0, 1])
    def test_damaged_files_are_set_aside(self, tmp_path: Path, column: int) -> None:
        here = self.place(tmp_path)
        (tmp_path / "in" / "a.parquet").write_bytes(b"PAR1 oops PAR1")
        path = self.put(here, "b.parquet", list(range(1_000)))
        start = pq.read_metadata(path).row_group(0).column(column).dictionary_page_offset
        raw = bytearray(path.read_bytes())
        raw[start : start + 400] = bytes(400)
        path.write_bytes(raw)
        self.put(here, "c.parquet", [7])
        run(here.start())
        run(here.start())
        assert here.rows() == [7]
        assert here.letters.counts() == {"malformed": 0, "late": 0, "skipped": 2}

    def test_files_without_an_event_time_are_looked_at_too(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        here.stream = Stream("readings", here.stream.source, Shape(SHAPE.schema))
        path = self.put(here, "a.parquet", [3, 1])
        run(here.start())
        assert self.is_linked(here, path)
        assert here.rows() == [3, 1]

    def test_names_that_are_not_utf8(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        path = self.put(here, "a.parquet", [1])
        path.rename(path.with_name(os.fsdecode(b"\xff.parquet")))
        run(here.start())
        assert here.rows() == [1]

    def test_another_disk_is_copied_from(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*args: object) -> None:
            raise OSError(errno.EXDEV, "Invalid cross-device link")

        here = self.place(tmp_path)
        path = self.put(here, "a.parquet", [1, 2])
        monkeypatch.setattr(linking, "os", SimpleNamespace(link=refuse))
        run(here.start())
        assert not self.is_linked(here, path)
        assert here.rows() == [1, 2]

    def test_a_full_disk_leaves_no_half_copy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def half(path: Path, target: Path) -> None:
            target.write_bytes(b"PAR1 and then")
            full()

        here = self.place(tmp_path)
        self.put(here, "a.parquet", [1, 2])
        one = here.start()
        with monkeypatch.context() as patch:
            patch.setattr(linking, "os", SimpleNamespace(link=full))
            patch.setattr(linking.shutil, "copyfile", half)
            with pytest.raises(OSError, match="No space left"):
                one.step()
        assert names(here.channel.data) == []
        run(one)
        assert here.rows() == [1, 2]

    @pytest.mark.parametrize("after", [False, True])
    def test_dying_anywhere_changes_nothing(self, tmp_path: Path, after: bool) -> None:
        for death in range(1, 30):
            (tmp_path / str(death)).mkdir()
            here = self.place(tmp_path / str(death))
            self.put(here, "a.parquet", [1, 3])
            self.put(here, "b.parquet", [4, 2, 5])
            self.put(here, "c.parquet", [6])
            survived = live_until(here, death, after)
            run(here.start())
            assert here.rows() == [1, 3, 4, 5, 6]
            assert here.letters.counts() == {"malformed": 0, "late": 1}
            if survived:
                return
        raise AssertionError("three files take this many changes?")
