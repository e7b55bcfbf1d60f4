"""Bringing files into a channel: parsed once, late rows set aside once, whole or not at all.

Files that arrive in a directory and recordings that are replayed both become batches of a
channel. What was accepted is from then on in Penstock's hands: the original may be deleted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.channels.dead_letters import DeadLetters
from penstock.channels.ingest.entrance import Entrance, InOrder, later, settled
from penstock.channels.ingest.linking import fits, link, row_count, times
from penstock.channels.ingest.stepwise import StepwiseIngest
from penstock.channels.ingest.taken import TakenFiles
from penstock.channels.manifest import ChannelFile, file_name
from penstock.channels.writer import Writer
from penstock.errors import InputError
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.files import read_pieces
from penstock.feeds.lateness import sift
from penstock.feeds.pieces import Piece, Reject
from penstock.model.sources import DirectorySource, ReplaySource, Stream

_ROWS_PER_COMMIT = 200_000
_LAST_PIECE = 1 << 30
_NO_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True)
class FileProgress(InOrder):
    """How far the intake has come.

    ``files`` are taken whole; of the next one ``pieces`` are loaded, and ``rows`` of those pieces
    are out.
    """

    files: int = 0
    pieces: int = 0
    rows: int = 0

    @property
    def position(self) -> tuple[int, int]:
        return self.files, self.rows


class FileIngest(StepwiseIngest):
    """Moves one stream's files into its channel, step by step.

    ``folder`` keeps ``taken-N``, the names of the files in the order the owner with epoch N and
    those before it accepted them.
    """

    def __init__(self, stream: Stream, writer: Writer, folder: Path, letters: DeadLetters) -> None:
        assert isinstance(stream.source, DirectorySource | ReplaySource)
        super().__init__(Entrance(stream, writer, letters))
        self._stream = stream
        self._source = stream.source
        folder.mkdir(parents=True, exist_ok=True)
        self._taken = TakenFiles(folder, writer.epoch)
        self._anchor: tuple[float, int] | None = None
        self._go_back()

    def _go_back(self) -> None:
        self._progress = self._entrance.restored(FileProgress)
        self._pieces: Iterator[tuple[int, Piece]] | None = None
        self._waiting: Piece | None = None

    def _step(self) -> bool:
        if self._take_whole():
            return True
        gathered, rejects, progress = self._gather()
        exhausted = not gathered and self._is_exhausted(progress)
        if not gathered and not rejects and not exhausted:
            moved = self._entrance.let_time_pass(progress)
            self._progress = moved or progress
            return moved is not None
        empty = arrow_schema(self._stream.shape.schema).empty_table()
        rows = pa.concat_tables([empty, *gathered])
        self._progress = self._entrance.admit(rows, progress, rejects, exhausted)
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
        arrived_s = time.time()
        if event_time is not None:
            if self._entrance.is_too_far_ahead(at, progress.latest_us, arrived_s).any():
                return False
            progress = later(settled(progress, at[event_time]), at[event_time])
            if self._stream.lateness_us is not None:
                sifted = sift(at, event_time, self._stream.lateness_us, progress.high_water_us)
                if sifted.kept.num_rows < at.num_rows:
                    return False
                progress = replace(progress, high_water_us=sifted.high_water_us)
        writer, batch = self._entrance.writer, self._entrance.sequence
        target = writer.channel.data / file_name(batch, writer.epoch, 0)
        link(path, target)
        there = target.stat()
        rows = row_count(target)
        file = ChannelFile(target.name, rows, there.st_size, modified_ns=there.st_mtime_ns)
        progress = replace(progress, admitted=progress.admitted + rows)
        self._entrance.forget_attempts()
        self._entrance.record([file], progress, arrived_s=arrived_s)
        self._progress = progress
        return True

    def _whole_file(self) -> Path | None:
        """The next file if none of it is taken yet and it could be linked."""
        begun = self._pieces is not None or self._waiting is not None or self._progress.pieces
        if begun or not isinstance(self._source, DirectorySource):
            return None
        if self._source.format != "parquet" or not self._stream.parsing.is_plain:
            return None
        path = self._file(self._progress.files)
        return path if path is not None and fits(path, self._stream.shape.schema) else None

    def _gather(self) -> tuple[list[pa.Table], list[Reject], FileProgress]:
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

    def _next_piece(self, progress: FileProgress) -> tuple[Piece | None, FileProgress]:
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

    def _resumed(self, path: Path, progress: FileProgress) -> Iterator[tuple[int, Piece]]:
        """The pieces of a file from where a former process stopped."""
        skip = progress.rows
        try:
            source, stream = self._source, self._stream
            pieces = read_pieces(
                path, source.format, source.layout, stream.read_schema, stream.parsing
            )
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
            if not self._taken.names and self._source.path.is_file():
                self._taken.add([self._source.path.name], self._source.path.parent)
            return self._source.path if index == 0 else None
        if index >= len(self._taken.names):
            self._taken.add(self._new_files(), self._source.path)
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
        new = (name for name in names if name not in self._taken and _is_whole(name, pattern))
        return sorted(name for name in new if (folder / name).is_file())

    def _due(self, rows: pa.Table) -> int:
        """How many of these rows a replay has come to by now."""
        speedup = self._source.speedup if isinstance(self._source, ReplaySource) else None
        if speedup is None or rows.num_rows == 0 or self._stream.shape.event_time is None:
            return int(rows.num_rows)
        times = pc.fill_null(rows[self._stream.shape.event_time].cast(pa.int64()), _NO_TIME)
        # What is to be set aside must not hold up what comes after it.
        ahead = self._entrance.is_too_far_ahead(rows, self._progress.latest_us, time.time())
        highest = np.maximum.accumulate(np.where(ahead, _NO_TIME, times.to_numpy()))
        if self._anchor is None:
            known = highest[highest > _NO_TIME]
            if not len(known):
                return int(rows.num_rows)
            latest_us = self._progress.latest_us
            self._anchor = (time.monotonic(), int(known[0]) if latest_us is None else latest_us)
        wall_s, event_us = self._anchor
        now_us = event_us + (time.monotonic() - wall_s) * speedup * 1e6
        return int(np.searchsorted(highest, now_us, side="right"))

    def _is_exhausted(self, progress: FileProgress) -> bool:
        if self._waiting is not None:
            return False
        if isinstance(self._source, ReplaySource):
            return progress.files >= 1
        return self._source.finished and progress.files >= len(self._taken.names)


def _is_whole(name: str, pattern: str) -> bool:
    return not name.startswith((".", "_")) and not name.endswith(".tmp") and fnmatch(name, pattern)
