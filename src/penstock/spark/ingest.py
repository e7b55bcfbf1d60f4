"""Bringing files into a channel: parsed once, late rows set aside once, whole or not at all.

Files that arrive in a directory and recordings that are replayed both become batches of a
channel. What was accepted is from then on in Penstock's hands: the original may be deleted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import InputError
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.files import Piece, Reject, read_pieces
from penstock.feeds.lateness import sift
from penstock.model.sources import DirectorySource, ReplaySource, Stream
from penstock.spark.channels.channel import Writer
from penstock.spark.channels.manifest import ChannelFile
from penstock.spark.dead_letters import DeadLetters
from penstock.spark.linking import fits, link, row_count, times
from penstock.spark.sources.beats import END_OF_TIME_US
from penstock.spark.taken import TakenFiles

_ROWS_PER_COMMIT = 200_000
_ROW_GROUP = 50_000
_LAST_PIECE = 1 << 30
_NO_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Progress:
    """How far the intake has come: kept in every manifest, read back after a restart.

    ``files`` are taken whole; of the next one ``pieces`` are loaded, and ``rows`` of those pieces
    are out. ``latest_us`` is the latest event time of a row; ``high_water_us``, by which rows are
    late or not, runs ahead of it where time has passed without rows.
    """

    files: int = 0
    pieces: int = 0
    rows: int = 0
    high_water_us: int | None = None
    latest_us: int | None = None

    @classmethod
    def after(cls, writer: Writer) -> Progress:
        """The progress recorded with the newest batch."""
        last = writer.last
        return cls(**last.writer_state) if last and last.writer_state else cls()  # type: ignore[arg-type]


class Ingest:
    """Moves one stream's files into its channel, step by step.

    ``folder`` keeps ``taken``, the names of the files in the order they were accepted. A step
    that fails leaves nothing behind and may be tried again.
    """

    def __init__(self, stream: Stream, writer: Writer, folder: Path, letters: DeadLetters) -> None:
        assert isinstance(stream.source, DirectorySource | ReplaySource)
        self._stream = stream
        self._source = stream.source
        self._writer = writer
        self._letters = letters
        folder.mkdir(parents=True, exist_ok=True)
        self._taken = TakenFiles(folder / "taken")
        self._anchor: tuple[float, int] | None = None
        self._last_rows_s = time.monotonic()
        self._go_back()

    def _go_back(self) -> None:
        """Forgets all that is not in the channel."""
        self._progress = Progress.after(self._writer)
        self._pieces: Iterator[tuple[int, Piece]] | None = None
        self._waiting: Piece | None = None
        self._may_repeat = True

    @property
    def is_finished(self) -> bool:
        """Whether the stream has ended and its channel says so."""
        return self._writer.last is not None and self._writer.last.ended

    def step(self) -> bool:
        """Commits what is there now, up to a batch; whether there was anything."""
        try:
            return not self.is_finished and self._step()
        except BaseException:
            self._go_back()
            raise

    def _step(self) -> bool:
        if self._take_whole():
            return True
        gathered, rejects, progress = self._gather()
        exhausted = not gathered and self._is_exhausted(progress)
        if not gathered and not rejects and not exhausted:
            self._progress = progress
            return self._let_time_pass()
        self._commit(gathered, rejects, progress, exhausted)
        return True

    def _take_whole(self) -> bool:
        """Commits the next file as it is, if it is Parquet that nothing must be taken out of."""
        path = self._whole_file()
        if path is None:
            return False
        progress = replace(self._progress, files=self._progress.files + 1)
        event_time = self._stream.shape.event_time
        at = times(path, self._stream.shape.schema, event_time)
        if at is None:
            return False
        if event_time is not None:
            progress = _later(progress, at[event_time])
            if self._stream.lateness_us is not None:
                sifted = sift(at, event_time, self._stream.lateness_us, progress.high_water_us)
                if sifted.late.num_rows:
                    return False
                progress = replace(progress, high_water_us=sifted.high_water_us)
        name = f"{self._sequence:010d}-{self._writer.epoch}-0.parquet"
        link(path, self._writer.channel.data / name)
        if self._may_repeat:
            self._letters.forget(f"ingest-{self._sequence:010d}")
        self._record([ChannelFile(name, row_count(path))], progress, ended=False)
        self._last_rows_s = time.monotonic()
        return True

    def _whole_file(self) -> Path | None:
        """The next file if none of it is taken yet and it could be linked."""
        begun = self._pieces is not None or self._waiting is not None or self._progress.pieces
        if begun or not isinstance(self._source, DirectorySource):
            return None
        if self._source.format != "parquet":
            return None
        path = self._file(self._progress.files)
        return path if path is not None and fits(path, self._stream.shape.schema) else None

    @property
    def _sequence(self) -> int:
        return 0 if self._writer.last is None else self._writer.last.sequence + 1

    def _gather(self) -> tuple[list[pa.Table], list[Reject], Progress]:
        tables: list[pa.Table] = []
        rejects: list[Reject] = []
        progress, rows = self._progress, 0
        while rows + len(rejects) < _ROWS_PER_COMMIT:
            piece, progress = self._next_piece(progress)
            if piece is None:
                break
            rejects += piece.rejects
            due = self._due(piece.rows)
            if due:
                tables.append(piece.rows.slice(0, due))
            rows += due
            progress = replace(progress, rows=progress.rows + due)
            if due < piece.rows.num_rows:
                self._waiting = Piece(piece.rows.slice(due))
                break
        return tables, rejects, progress

    def _next_piece(self, progress: Progress) -> tuple[Piece | None, Progress]:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            return waiting, progress
        while True:
            if self._pieces is None:
                path = self._file(progress.files)
                if path is None:
                    return None, progress
                self._pieces = self._resumed(path, progress)
            try:
                number, piece = next(self._pieces)
            except StopIteration:
                self._pieces = None
                progress = replace(progress, files=progress.files + 1, pieces=0, rows=0)
                continue
            if number < progress.pieces:
                return Piece(piece.rows), progress
            return piece, replace(progress, pieces=number + 1)

    def _resumed(self, path: Path, progress: Progress) -> Iterator[tuple[int, Piece]]:
        """The pieces of a file from where a former process stopped."""
        skip = progress.rows
        try:
            source, schema = self._source, self._stream.shape.schema
            pieces = read_pieces(path, source.format, source.layout, schema)
            for number, piece in enumerate(pieces):
                dropped = min(skip, piece.rows.num_rows)
                skip -= dropped
                yield number, Piece(piece.rows.slice(dropped), piece.rejects)
        except InputError as error:
            if isinstance(self._source, ReplaySource):
                raise
            empty = arrow_schema(self._stream.shape.schema).empty_table()
            yield _LAST_PIECE, Piece(empty, (Reject(path.name, 0, str(error), ""),))

    def _file(self, index: int) -> Path | None:
        if isinstance(self._source, ReplaySource):
            return self._source.path if index == 0 else None
        if index >= len(self._taken.names):
            self._taken.add(self._new_files())
        names = self._taken.names
        return self._source.path / names[index] if index < len(names) else None

    def _new_files(self) -> list[str]:
        assert isinstance(self._source, DirectorySource)
        folder, pattern = self._source.path, self._source.pattern
        try:
            names = [entry.name for entry in folder.iterdir()]
        except FileNotFoundError:
            raise InputError(
                f"stream {self._stream.name} reads from {folder}, and there is no such directory",
                hint="Make it, or correct the path.",
            ) from None
        new = (one for one in names if one not in self._taken and _is_whole(one, pattern))
        return sorted(one for one in new if (folder / one).is_file())

    def _due(self, rows: pa.Table) -> int:
        """How many of these rows a replay has come to by now."""
        speedup = self._source.speedup if isinstance(self._source, ReplaySource) else None
        if speedup is None or rows.num_rows == 0 or self._stream.shape.event_time is None:
            return int(rows.num_rows)
        times = pc.fill_null(rows[self._stream.shape.event_time].cast(pa.int64()), _NO_TIME)
        highest = np.maximum.accumulate(times.to_numpy())
        if self._anchor is None:
            known = highest[highest > _NO_TIME]
            if not len(known):
                return int(rows.num_rows)
            latest_us = self._progress.latest_us
            self._anchor = (time.monotonic(), int(known[0]) if latest_us is None else latest_us)
        wall_s, event_us = self._anchor
        now_us = event_us + (time.monotonic() - wall_s) * speedup * 1e6
        return int(np.searchsorted(highest, now_us, side="right"))

    def _is_exhausted(self, progress: Progress) -> bool:
        if self._waiting is not None:
            return False
        if isinstance(self._source, ReplaySource):
            return progress.files >= 1
        return self._source.finished and progress.files >= len(self._taken.names)

    def _let_time_pass(self) -> bool:
        """Moves an idle stream's time on each time its timeout has passed."""
        timeout_us, lateness_us = self._stream.idle_timeout_us, self._stream.lateness_us
        latest_us, high_us = self._progress.latest_us, self._progress.high_water_us
        if timeout_us is None or lateness_us is None or latest_us is None or high_us is None:
            return False
        quiet_us = int((time.monotonic() - self._last_rows_s) * 1e6)
        waited_us = quiet_us // timeout_us * timeout_us
        moved_us = latest_us + max(waited_us, lateness_us)
        if not waited_us or moved_us <= high_us:
            return False
        self._commit([], [], replace(self._progress, high_water_us=moved_us), False)
        return True

    def _commit(
        self, tables: list[pa.Table], rejects: list[Reject], progress: Progress, ended: bool
    ) -> None:
        part = f"ingest-{self._sequence:010d}"
        if self._may_repeat:
            self._letters.forget(part)
        self._letters.put_rejects(part, rejects)
        empty = arrow_schema(self._stream.shape.schema).empty_table()
        rows, progress = self._sifted(part, pa.concat_tables([empty, *tables]), progress)
        self._record(self._written(rows), progress, ended)
        if tables:
            self._last_rows_s = time.monotonic()

    def _record(self, files: list[ChannelFile], progress: Progress, ended: bool) -> None:
        watermark_us = self._watermark_us(progress, ended)
        self._writer.commit(self._sequence, files, watermark_us, ended, dict(vars(progress)))
        self._progress, self._may_repeat = progress, False

    def _sifted(self, part: str, rows: pa.Table, progress: Progress) -> tuple[pa.Table, Progress]:
        """The rows in time, those too late set aside; how far the stream's time has come."""
        event_time, lateness_us = self._stream.shape.event_time, self._stream.lateness_us
        if event_time is None:
            return rows, progress
        progress = _later(progress, rows[event_time])
        if lateness_us is None:
            return rows, progress
        sifted = sift(rows, event_time, lateness_us, progress.high_water_us)
        self._letters.put_late(part, sifted.late)
        return sifted.kept, replace(progress, high_water_us=sifted.high_water_us)

    def _watermark_us(self, progress: Progress, ended: bool) -> int | None:
        if ended:
            return END_OF_TIME_US
        if progress.high_water_us is None or self._stream.lateness_us is None:
            return None
        return progress.high_water_us - self._stream.lateness_us

    def _written(self, rows: pa.Table) -> list[ChannelFile]:
        # Several files let several tasks read a batch at once.
        parts = max(1, min(4, rows.num_rows // _ROW_GROUP))
        files = []
        for k in range(parts):
            low, high = rows.num_rows * k // parts, rows.num_rows * (k + 1) // parts
            if high > low:
                name = f"{self._sequence:010d}-{self._writer.epoch}-{k}.parquet"
                _write_parquet(rows.slice(low, high - low), self._writer.channel.data / name)
                files.append(ChannelFile(name, high - low))
        return files


def _later(progress: Progress, event_times: pa.ChunkedArray) -> Progress:
    """The progress with the latest event time that any row has had."""
    latest_us = pc.max(event_times.cast(pa.int64())).as_py()
    if latest_us is None:
        return progress
    known_us = latest_us if progress.latest_us is None else progress.latest_us
    return replace(progress, latest_us=max(latest_us, known_us))


def _is_whole(name: str, pattern: str) -> bool:
    return not name.startswith((".", "_")) and not name.endswith(".tmp") and fnmatch(name, pattern)


def _write_parquet(rows: pa.Table, path: Path) -> None:
    try:
        pq.write_table(rows, path, compression="lz4")
    except BaseException:
        path.unlink(missing_ok=True)
        raise


class IngestThread(threading.Thread):
    """Runs an ingest until its stream ends or it is stopped."""

    def __init__(self, ingest: Ingest, name: str, poll_s: float = 0.1) -> None:
        super().__init__(name=f"ingest-{name}", daemon=True)
        self._ingest = ingest
        self._poll_s = poll_s
        self._stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set() and not self._ingest.is_finished:
                if not self._ingest.step():
                    self._stopping.wait(self._poll_s)
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        """Ends the thread after the step under way."""
        self._stopping.set()
        self.join()
