"""Making rows of a stream again that were brought in before, exactly as they were judged then.

Whether a row is late depends on the rows before it, and on where an idle stream's time moved on by
itself. The rows come again in the same order; where the time moved on is kept with the stream.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.channels.dead_letters import DeadLetters
from penstock.channels.ingest.entrance import Entrance, InOrder, Overtaken
from penstock.channels.ingest.stepwise import StepwiseIngest
from penstock.channels.ingest.taken import taken_before
from penstock.channels.manifest import END_OF_TIME_US, Manifest
from penstock.channels.writer import Writer
from penstock.errors import InputError, RunError, listed
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.files import read_pieces
from penstock.feeds.generators import generator
from penstock.model.beginnings import Reread
from penstock.model.sources import DirectorySource, GeneratorSource, ReplaySource, Stream

_ROWS_PER_COMMIT = 200_000
_START_WITH = "Begin it with --from now, or with --from oldest for what is kept."

Chunk = tuple[int, int, pa.Table]
"""A file's number, the number of the first row in it, and rows from there on."""


def reread_of(stream: str, manifest: Manifest) -> Reread:
    """What has to be made again of a stream to come to where it was behind a batch.

    Raises if it is a topic of Kafka.
    """
    state: Mapping[str, Any] = manifest.writer_state
    if "offsets" in state:
        raise InputError(
            f"{stream} cannot be read again from its start: it comes from Kafka, which may have "
            "deleted records since",
            hint=_START_WITH,
        )
    file, row = (state["files"], state["rows"]) if "files" in state else (0, state["at"])
    idle = state.get("idle")
    jumps = [*state.get("jumps", ()), *([] if idle is None else [idle])]
    known = tuple((at, number, us) for at, number, us in jumps)
    return Reread(stream, file, row, state["high_water_us"], manifest.ended, known)


def check_rereadable(stream: Stream, folder: Path, again: Reread) -> None:
    """Raises unless all that was brought in of a stream is still there to be read again."""
    if stream.ahead_us is not None:
        raise InputError(
            f"{stream.name} cannot be read again from its start: which of its rows were too far "
            "ahead was decided by the clock",
            hint=_START_WITH,
        )
    if isinstance(stream.source, GeneratorSource):
        return
    missing = [file.name for file in _files(stream, folder, again) if not file.path.is_file()]
    if missing:
        raise InputError(
            f"{stream.name} cannot be read again from its start: {listed(missing[:3])} "
            f"{'is' if len(missing) == 1 else 'are'} gone",
            hint=_START_WITH,
        )
    changed = [file.name for file in _files(stream, folder, again) if file.has_changed]
    if changed:
        raise InputError(
            f"{stream.name} cannot be read again from its start: {listed(changed[:3])} "
            f"{'has' if len(changed) == 1 else 'have'} changed since",
            hint=_START_WITH,
        )


@dataclass(frozen=True)
class _File:
    path: Path
    mark: tuple[int, int] | None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def has_changed(self) -> bool:
        """Whether it is known to be another than the one that was read."""
        there = self.path.stat()
        return self.mark is not None and self.mark != (there.st_size, there.st_mtime_ns)


def _files(stream: Stream, folder: Path, again: Reread) -> list[_File]:
    """The files that were read, wholly or in part, in that order."""
    source = stream.source
    assert isinstance(source, DirectorySource | ReplaySource)
    count = again.file + int(again.row > 0)
    taken = taken_before(folder)
    if isinstance(source, ReplaySource):
        return [_File(source.path, taken.marks.get(source.path.name))][:count]
    return [_File(source.path / name, taken.marks.get(name)) for name in taken.names[:count]]


class _NoLetters(DeadLetters):
    """Keeps nothing: what could not be used has been set aside once."""

    def _put(self, part: str, kind: str, lines: list[str]) -> int:
        return 0

    def forget(self, part: str) -> None:
        return None


@dataclass(frozen=True)
class Repeated(InOrder):
    """How far rows have been made again: up to this row of this file."""

    file: int = 0
    row: int = 0

    @property
    def position(self) -> tuple[int, int]:
        return self.file, self.row


class Rereading(StepwiseIngest):
    """Brings the rows before a position into a channel, as fast as they are read.

    Its last batch is marked as the end, and tells the time that the stream had come to there.
    ``folder`` is where the stream itself keeps which files it has taken.
    """

    def __init__(self, stream: Stream, again: Reread, writer: Writer, folder: Path) -> None:
        super().__init__(Entrance(stream, writer, _NoLetters(folder)))
        self._stream = stream
        self._again = again
        self._folder = folder
        self._go_back()

    def _go_back(self) -> None:
        self._progress = self._entrance.restored(Repeated)
        self._chunks = self._cut(_chunks(self._stream, self._again, self._folder, self._progress))

    def _step(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            self._end()
            return True
        file, row, rows = chunk
        progress = replace(self._moved_on(self._progress, (file, row)), file=file, row=row)
        progress = replace(progress, row=row + rows.num_rows)
        self._progress = self._entrance.admit(rows, progress)
        return True

    def _moved_on(self, progress: Repeated, position: tuple[int, int]) -> Repeated:
        """The progress with the time that the stream had come to by itself before a position."""
        passed = [high for *at, high in self._again.jumps if tuple(at) <= position]
        known = [*passed, *([] if progress.high_water_us is None else [progress.high_water_us])]
        return replace(progress, high_water_us=max(known, default=None))

    def _cut(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The chunks, cut where the time moved on by itself."""
        for file, row, rows in chunks:
            stops = sorted(at for name, at, _ in self._again.jumps if name == file)
            inside = [at - row for at in stops if 0 < at - row < rows.num_rows]
            edges = [0, *inside, rows.num_rows]
            for low, high in pairwise(edges):
                yield file, row + low, rows.slice(low, high - low)

    def _end(self) -> None:
        again, lateness_us = self._again, self._stream.lateness_us
        progress = self._moved_on(self._progress, (again.file, again.row))
        if lateness_us is not None and progress.high_water_us != again.high_water_us:
            raise RunError(
                f"{self._stream.name} was read again and has other rows than before",
                hint="What it is read from has changed. Begin the query with --from now.",
            )
        high_us = progress.high_water_us
        watermark_us = None if high_us is None or lateness_us is None else high_us - lateness_us
        watermark_us = END_OF_TIME_US if again.ended else watermark_us
        writer = self._entrance.writer
        state = asdict(progress)
        number = self._entrance.sequence
        made = writer.commit(number, [], watermark_us, True, state, time.time())
        if made.epoch != writer.epoch:
            raise Overtaken


def _chunks(stream: Stream, again: Reread, folder: Path, done: Repeated) -> Iterator[Chunk]:
    """The rows before the position, from where an earlier attempt has come to."""
    source, columns = stream.source, arrow_schema(stream.shape.schema)
    if isinstance(source, GeneratorSource):
        feed = generator(source.generator, source.options)
        for at in range(done.row, again.row, _ROWS_PER_COMMIT):
            rows = feed.read(at, min(at + _ROWS_PER_COMMIT, again.row))
            yield 0, at, rows.select(columns.names).cast(columns)
        return
    for number, file in enumerate(_files(stream, folder, again)):
        if number >= done.file:
            stop = again.row if number == again.file else None
            yield from _rows_of(stream, number, file, done.row * (number == done.file), stop)


def _rows_of(
    stream: Stream, number: int, file: _File, start: int, stop: int | None
) -> Iterator[Chunk]:
    source, row = stream.source, 0
    assert isinstance(source, DirectorySource | ReplaySource)
    try:
        given = (source.format, source.layout, stream.read_schema, stream.parsing)
        for piece in read_pieces(file.path, *given):
            end = row + piece.rows.num_rows
            end = end if stop is None else min(end, stop)
            first = max(row, start)
            if first < end:
                yield number, first, piece.rows.slice(first - row, end - first)
            if end == stop:
                return
            row += piece.rows.num_rows
    except InputError:
        # A file that cannot be read was set aside as a whole, unless it is all there is.
        if isinstance(source, ReplaySource) or not file.path.is_file():
            raise
