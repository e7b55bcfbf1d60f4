"""Where rows enter a channel: late ones set aside, the rest committed with the stream's time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.channels.dead_letters import DeadLetters
from penstock.channels.files import write_files
from penstock.channels.manifest import END_OF_TIME_US, ChannelFile
from penstock.channels.writer import Writer
from penstock.feeds.arrow import rows_of
from penstock.feeds.convert import outside_calendar
from penstock.feeds.lateness import Sifted, is_too_far_ahead, sift
from penstock.feeds.pieces import Reject
from penstock.model.sources import Stream

_SMALL_ROWS = 20_000
_SMALL_BATCHES = 3
_GATHERED_AT_MOST_S = 1.0


Jump = tuple[int, int, int]
"""A file, a row in it, and the event time that a stream had come to by itself before that row."""


@dataclass(frozen=True)
class Reached:
    """How far a stream's time has come.

    ``latest_us`` is the latest event time of a row; ``high_water_us``, which tells the stream's
    time, runs ahead of it where time has passed without rows. ``admitted`` counts the rows that
    came in.
    """

    high_water_us: int | None = None
    latest_us: int | None = None
    admitted: int = 0

    @property
    def furthest_us(self) -> int | None:
        """The event time after which no row has come in so far; None where rows are not judged."""
        return self.high_water_us

    def moved_to(self, high_water_us: int) -> Self:
        """The progress once time has passed without rows, up to there."""
        return replace(self, high_water_us=high_water_us)


@dataclass(frozen=True)
class InOrder(Reached):
    """How far a stream has come whose rows have one order, by which they are late or not.

    ``idle`` is where time has passed since the last row, and how far it has come; ``jumps`` are
    former such moments that counted: the next row was earlier.
    """

    idle: Jump | None = None
    jumps: tuple[Jump, ...] = ()

    def __post_init__(self) -> None:
        # Read back from a manifest they are lists.
        object.__setattr__(self, "jumps", tuple(tuple(jump) for jump in self.jumps))
        object.__setattr__(self, "idle", None if self.idle is None else tuple(self.idle))

    @property
    def position(self) -> tuple[int, int]:
        """The file, and the row in it, that comes next."""
        raise NotImplementedError

    def moved_to(self, high_water_us: int) -> Self:
        return replace(self, high_water_us=high_water_us, idle=(*self.position, high_water_us))


Progress = TypeVar("Progress", bound=Reached)
Ordered = TypeVar("Ordered", bound=InOrder)


@dataclass(frozen=True)
class JudgedRows:
    """Rows that have one order, told apart.

    ``outside`` are those outside of the calendar, ``ahead`` those too far in the future; ``times``
    are the event times of all others, None where rows have none.
    """

    sifted: Sifted
    ahead: pa.Table
    outside: list[Reject] = field(default_factory=list)
    times: pa.ChunkedArray | None = None

    @property
    def kept(self) -> pa.Table:
        """The rows that count."""
        return self.sifted.kept

    @property
    def latest_us(self) -> int | None:
        """The latest event time of a row that is not too far ahead; None if none has one."""
        return None if self.times is None else pc.max(self.times.cast(pa.int64())).as_py()

    @property
    def is_empty(self) -> bool:
        """Whether there was no row at all."""
        told_apart = (self.kept, self.sifted.late, self.sifted.untimed, self.ahead)
        return not self.outside and not any(rows.num_rows for rows in told_apart)


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
        return self.writer.is_held_back

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
        progress: Ordered,
        rejects: Iterable[Reject] = (),
        ended: bool = False,
    ) -> Ordered:
        """Commits the rows that are in time as the next batch; the progress after it."""
        arrived_s = time.time()
        judged = self.judge(rows, progress.high_water_us, progress.latest_us, arrived_s)
        if judged.times is not None:
            progress = later(settled(progress, judged.times), judged.times)
            progress = replace(progress, high_water_us=judged.sifted.high_water_us)
        return self.admit_judged([judged], progress, rejects, ended, arrived_s)

    def judge(
        self, rows: pa.Table, high_water_us: int | None, latest_us: int | None, arrived_s: float
    ) -> JudgedRows:
        """Tells rows apart that came one after the other, by what came before them."""
        kept, outside = self._in_calendar(rows)
        event_time, lateness_us = self._stream.shape.event_time, self._stream.lateness_us
        ahead = self.is_too_far_ahead(kept, latest_us, arrived_s)
        too_far = kept.slice(0, 0)
        if ahead.any():
            too_far, kept = kept.filter(pa.array(ahead)), kept.filter(pa.array(~ahead))
        if event_time is not None and lateness_us is not None:
            sifted = sift(kept, event_time, lateness_us, high_water_us)
        else:
            sifted = Sifted(kept, kept.slice(0, 0), [], high_water_us, kept.slice(0, 0))
        times = None if event_time is None else kept[event_time]
        return JudgedRows(sifted, too_far, outside, times)

    def admit_judged(
        self,
        judged: Sequence[JudgedRows],
        progress: Progress,
        rejects: Iterable[Reject],
        ended: bool,
        arrived_s: float,
    ) -> Progress:
        """Commits the rows that count as the next batch, in this order; the progress after it."""
        self.forget_attempts()
        self._set_aside(judged, rejects, arrived_s)
        kept = pa.concat_tables([judged_rows.kept for judged_rows in judged])
        progress = replace(progress, admitted=progress.admitted + kept.num_rows)
        self.record(write_files(kept, self.writer, self.sequence), progress, ended, arrived_s)
        if not all(judged_rows.is_empty for judged_rows in judged):
            self._last_rows_s = time.monotonic()
        return progress

    def _set_aside(
        self, judged: Sequence[JudgedRows], rejects: Iterable[Reject], arrived_s: float
    ) -> None:
        letters, part = self._letters, f"ingest-{self.sequence:010d}"
        letters.put_rejects(
            part, [*rejects, *(bad for judged_rows in judged for bad in judged_rows.outside)]
        )
        letters.put_ahead(
            part, _together(judged_rows.ahead for judged_rows in judged), int(arrived_s * 1e6)
        )
        after_us = [us for judged_rows in judged for us in judged_rows.sifted.late_after_us]
        letters.put_late(
            part, _together(judged_rows.sifted.late for judged_rows in judged), after_us
        )
        letters.put_untimed(part, _together(judged_rows.sifted.untimed for judged_rows in judged))

    def forget_attempts(self) -> None:
        """Drops what an attempt at the next batch by an earlier process may have set aside."""
        if self._may_repeat:
            self._letters.forget(f"ingest-{self.sequence:010d}")

    def record(
        self,
        files: list[ChannelFile],
        progress: Reached,
        ended: bool = False,
        arrived_s: float | None = None,
    ) -> None:
        """Commits files that are in the channel's folder already as the next batch.

        ``arrived_s`` is the clock by which its rows were judged, or now.
        """
        watermark_us = self._watermark_us(progress, ended)
        state = asdict(progress)
        by_s = time.time() if arrived_s is None else arrived_s
        latest_us = self._latest(progress)
        made = self.writer.commit(self.sequence, files, watermark_us, ended, state, by_s, latest_us)
        if made.epoch != self.writer.epoch:
            raise Overtaken
        self._may_repeat = False
        self._committed_s = time.monotonic()
        if files:
            self._last_rows_s = time.monotonic()

    def _in_calendar(self, rows: pa.Table) -> tuple[pa.Table, list[Reject]]:
        """Rows with event times that Python, SQL and files can write; the others with a reason.

        What is read from files is in the calendar already; what is generated need not be.
        """
        event_time = self._stream.shape.event_time
        if event_time is None or not rows.num_rows:
            return rows, []
        outside = outside_calendar(rows[event_time])
        if not outside.any():
            return rows, []
        reason = f"{event_time} is outside of the years 1 to 9999"
        rejects = [
            Reject(self._stream.name, 0, reason, json.dumps(row, default=str))
            for row in rows_of(rows.filter(pa.array(outside)))
        ]
        return rows.filter(pa.array(~outside)), rejects

    def is_too_far_ahead(
        self, rows: pa.Table, latest_us: int | None, arrived_s: float
    ) -> np.ndarray:
        """Which rows are further ahead than the stream allows, if it says anything about that."""
        event_time, ahead_us = self._stream.shape.event_time, self._stream.ahead_us
        if event_time is None or ahead_us is None:
            return np.zeros(rows.num_rows, dtype=bool)
        return is_too_far_ahead(rows, event_time, ahead_us, int(arrived_s * 1e6), latest_us)

    def let_time_pass(self, progress: Progress) -> Progress | None:
        """Moves an idle stream's time on each time its timeout has passed; None if not yet."""
        moved_us = self.idle_time_us(progress)
        if moved_us is None:
            return None
        progress = progress.moved_to(moved_us)
        self.record([], progress)
        return progress

    def idle_time_us(self, progress: Reached) -> int | None:
        """Where the time of an idle stream has come to by itself; None if it has not moved."""
        timeout_us, lateness_us = self._stream.idle_timeout_us, self._stream.lateness_us
        latest_us, high_us = progress.latest_us, progress.high_water_us
        if timeout_us is None or lateness_us is None or latest_us is None or high_us is None:
            return None
        quiet_us = int((time.monotonic() - self._last_rows_s) * 1e6)
        waited_us = quiet_us // timeout_us * timeout_us
        moved_us = latest_us + max(waited_us, lateness_us)
        return moved_us if waited_us and moved_us > high_us else None

    def _latest(self, progress: Reached) -> dict[str, int]:
        event_time, furthest_us = self._stream.shape.event_time, progress.furthest_us
        return {} if event_time is None or furthest_us is None else {event_time: furthest_us}

    def _watermark_us(self, progress: Reached, ended: bool) -> int | None:
        if ended:
            return END_OF_TIME_US
        if progress.high_water_us is None or self._stream.lateness_us is None:
            return None
        return progress.high_water_us - self._stream.lateness_us


def _together(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(list(tables))


def settled(progress: Ordered, event_times: pa.ChunkedArray) -> Ordered:
    """The progress once rows come: that time has passed before counts if the first is earlier."""
    first = pc.first(event_times.cast(pa.int64())).as_py()
    if progress.idle is None or first is None:
        return progress
    counted = (progress.idle,) if first < progress.idle[-1] else ()
    return replace(progress, idle=None, jumps=(*progress.jumps, *counted))


def later(progress: Progress, event_times: pa.ChunkedArray) -> Progress:
    """The progress with the latest event time that any row has had."""
    latest_us = pc.max(event_times.cast(pa.int64())).as_py()
    if latest_us is None:
        return progress
    known_us = latest_us if progress.latest_us is None else progress.latest_us
    return replace(progress, latest_us=max(latest_us, known_us))
