"""Where rows enter a channel: late ones set aside, the rest committed with the stream's time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.feeds.lateness import sift
from penstock.feeds.pieces import Reject
from penstock.model.sources import Stream
from penstock.spark.channels.channel import Writer
from penstock.spark.channels.files import write_files
from penstock.spark.channels.manifest import ChannelFile
from penstock.spark.dead_letters import DeadLetters
from penstock.spark.sources.beats import END_OF_TIME_US

_UNREAD_ROWS_AT_MOST = 2_000_000
_SMALL_ROWS = 20_000
_SMALL_BATCHES = 3
_GATHERED_AT_MOST_S = 1.0


@dataclass(frozen=True)
class Reached:
    """How far a stream's time has come.

    ``latest_us`` is the latest event time of a row; ``high_water_us``, by which rows are late or
    not, runs ahead of it where time has passed without rows.
    """

    high_water_us: int | None = None
    latest_us: int | None = None


Progress = TypeVar("Progress", bound=Reached)


class Overtaken(Exception):
    """A former owner was a moment quicker: its batch counts, and we go on from there."""


class Entrance:
    """The way of one stream into its channel.

    Whoever brings the rows says with every batch how far they have come; that is kept in the
    batch's manifest and given back after a restart. What fails leaves nothing behind that counts.
    """

    def __init__(self, stream: Stream, writer: Writer, letters: DeadLetters) -> None:
        self._stream = stream
        self.writer = writer
        self._letters = letters
        self._last_rows_s = time.monotonic()
        self._committed_s = 0.0
        self._may_repeat = True

    @property
    def is_finished(self) -> bool:
        """Whether the stream has ended and its channel says so."""
        return self.writer.last is not None and self.writer.last.ended

    @property
    def is_held_back(self) -> bool:
        """Whether the slowest reader is so far behind that nothing more is let in."""
        return sum(self.writer.unread()) > _UNREAD_ROWS_AT_MOST

    @property
    def is_open(self) -> bool:
        """Whether rows may come in now."""
        return not (self.is_finished or self.is_held_back or self._is_gathering)

    @property
    def _is_gathering(self) -> bool:
        """Whether to wait for more rows, because readers are behind a row of small batches.

        Every file costs them about the same, however little is in it; and they are busy anyway.
        """
        if time.monotonic() - self._committed_s > _GATHERED_AT_MOST_S:
            return False
        unread = self.writer.unread()
        small = sum(unread) < _SMALL_ROWS * len(unread)
        return len(unread) >= _SMALL_BATCHES and small

    @property
    def sequence(self) -> int:
        """The number of the next batch."""
        return 0 if self.writer.last is None else self.writer.last.sequence + 1

    def restored(self, kind: type[Progress]) -> Progress:
        """The progress kept with the newest batch, or the very first."""
        last = self.writer.last
        self._may_repeat = True
        return kind(**last.writer_state) if last and last.writer_state else kind()  # type: ignore[arg-type]

    def admit(
        self,
        rows: pa.Table,
        progress: Progress,
        rejects: Iterable[Reject] = (),
        ended: bool = False,
    ) -> Progress:
        """Commits the rows that are in time as the next batch; the progress after it."""
        part = f"ingest-{self.sequence:010d}"
        self.forget_attempts()
        self._letters.put_rejects(part, rejects)
        kept, progress = self._sifted(part, rows, progress)
        self.record(write_files(kept, self.writer, self.sequence), progress, ended)
        if rows.num_rows:
            self._last_rows_s = time.monotonic()
        return progress

    def forget_attempts(self) -> None:
        """Drops what an attempt at the next batch by an earlier process may have set aside."""
        if self._may_repeat:
            self._letters.forget(f"ingest-{self.sequence:010d}")

    def record(self, files: list[ChannelFile], progress: Reached, ended: bool = False) -> None:
        """Commits files that are in the channel's folder already as the next batch."""
        watermark_us = self._watermark_us(progress, ended)
        state = asdict(progress)
        made = self.writer.commit(self.sequence, files, watermark_us, ended, state, time.time())
        if made.epoch != self.writer.epoch:
            raise Overtaken
        self._may_repeat = False
        self._committed_s = time.monotonic()
        if files:
            self._last_rows_s = time.monotonic()

    def _sifted(self, part: str, rows: pa.Table, progress: Progress) -> tuple[pa.Table, Progress]:
        event_time, lateness_us = self._stream.shape.event_time, self._stream.lateness_us
        if event_time is None:
            return rows, progress
        progress = later(progress, rows[event_time])
        if lateness_us is None:
            return rows, progress
        sifted = sift(rows, event_time, lateness_us, progress.high_water_us)
        self._letters.put_late(part, sifted.late)
        return sifted.kept, replace(progress, high_water_us=sifted.high_water_us)

    def let_time_pass(self, progress: Progress) -> Progress | None:
        """Moves an idle stream's time on each time its timeout has passed; None if not yet."""
        timeout_us, lateness_us = self._stream.idle_timeout_us, self._stream.lateness_us
        latest_us, high_us = progress.latest_us, progress.high_water_us
        if timeout_us is None or lateness_us is None or latest_us is None or high_us is None:
            return None
        quiet_us = int((time.monotonic() - self._last_rows_s) * 1e6)
        waited_us = quiet_us // timeout_us * timeout_us
        moved_us = latest_us + max(waited_us, lateness_us)
        if not waited_us or moved_us <= high_us:
            return None
        progress = replace(progress, high_water_us=moved_us)
        self.record([], progress)
        return progress

    def _watermark_us(self, progress: Reached, ended: bool) -> int | None:
        if ended:
            return END_OF_TIME_US
        if progress.high_water_us is None or self._stream.lateness_us is None:
            return None
        return progress.high_water_us - self._stream.lateness_us


def later(progress: Progress, event_times: pa.ChunkedArray) -> Progress:
    """The progress with the latest event time that any row has had."""
    latest_us = pc.max(event_times.cast(pa.int64())).as_py()
    if latest_us is None:
        return progress
    known_us = latest_us if progress.latest_us is None else progress.latest_us
    return replace(progress, latest_us=max(latest_us, known_us))
