"""Reading a channel: which of its files make up the next batch, and how far time has come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import RunError
from penstock.spark.channels.channel import Channel
from penstock.spark.channels.durable import RESTORE
from penstock.spark.channels.files import check_of
from penstock.spark.channels.manifest import ChannelFile, Manifest
from penstock.spark.sources.beats import END_OF_TIME_US, stamp_us
from penstock.spark.sources.intake import Offset

# Opening a file costs about as much as reading this much of it.
_SMALLEST_SPLIT = 4 << 20
_AGAIN = "again"


@dataclass(frozen=True)
class FilePart:
    """A range of bytes of a Parquet file; whoever reads it reads the row groups in its middle."""

    path: Path
    start: int
    length: int
    size: int
    is_beat: bool = False


def _always() -> bool:
    return True


def _never() -> bool:
    return False


def _at_once() -> None:
    return None


class HandedOver(Exception):
    """Ends a query between two batches, because others go on with the next one.

    Spark would otherwise make a batch without rows as well, for the sake of the watermark: half a
    batch more for whoever takes over.
    """


@dataclass
class ChannelReader:
    """Reads the batches of a channel in order and tells the channel how far it has come.

    An offset is a JSON object: ``next`` is the first batch not read, ``watermark_us`` and
    ``ended`` say what is known about the stream there. ``event_time`` is set when the reader must
    tell Spark the watermark, by heartbeats kept in the folder ``beats``. While ``may_read`` says
    no, nothing new is taken. Once ``is_closing`` says yes, no further batch is planned at all.
    With ``groups`` only the rows of those are read, of a channel that is kept in groups.
    ``await_turn`` is called before anything is looked at, and may take its time. ``check_owner``
    raises when somebody else has taken over. ``arrived_s`` is when the oldest rows of the batch
    last planned entered the system, None if it has none.
    """

    channel: Channel
    name: str
    event_time: str | None
    beats: Path
    max_rows: int = 250_000
    parallelism: int = 2
    groups: frozenset[int] | None = None
    may_read: Callable[[], bool] = _always
    is_closing: Callable[[], bool] = _never
    await_turn: Callable[[], None] = _at_once
    check_owner: Callable[[], None] = _at_once
    failure: BaseException | None = field(default=None, init=False)
    arrived_s: float | None = field(default=None, init=False)
    _has_planned: bool = field(default=False, init=False)
    _planned_to: int | None = field(default=None, init=False)
    _unread: deque[tuple[int, int]] = field(default_factory=deque, init=False)

    def first(self) -> Offset:
        """The offset before all rows that are still kept."""
        return {"next": self.channel.oldest()}

    def latest(self, start: Offset) -> Offset:
        """The offset to read up to from ``start``: at most ``max_rows`` on, at least one batch."""
        if self.is_closing():
            raise HandedOver(f"{self.name} is handed over")
        known = {name: value for name, value in start.items() if name != _AGAIN}
        end = self._reached(known) if self.may_read() else known
        is_first, self._has_planned = not self._has_planned, True
        if end != known:
            return end
        return self._told_again(start) if is_first else start

    def _reached(self, start: Offset) -> Offset:
        end, rows = start, 0
        for manifest in self.channel.newer(_next(start)):
            rows += manifest.rows
            if end is not start and rows > self.max_rows:
                break
            end = _after(manifest, end)
        return end

    def _told_again(self, start: Offset) -> Offset:
        """An offset without new rows that makes a batch, for the sake of its heartbeat.

        Spark, started again, does not remember the watermark of each of its inputs: one that has
        ended or is idle would hold back the others for ever.
        """
        if self.event_time is None or "watermark_us" not in start:
            return start
        return start | {_AGAIN: int(str(start.get(_AGAIN, 0))) + 1}

    def parts(self, start: Offset, end: Offset) -> list[list[FilePart]]:
        """What to read for a batch, by task; reading it again gives the same rows."""
        self._planned_to = _next(end)
        if start == end:
            return []
        tasks = _shared_out(list(self._files(start, end)), self.parallelism)
        beat = self._beat(end)
        if beat is None:
            return tasks
        return [*tasks[:-1], [*tasks[-1], beat]] if tasks else [[beat]]

    def _files(self, start: Offset, end: Offset) -> Iterator[FilePart]:
        manifests = self.channel.manifests(_next(start), _next(end))
        arrived = [one.arrived_s for one in manifests if one.rows and one.arrived_s is not None]
        self.arrived_s = min(arrived, default=None)
        for manifest in manifests:
            for file in manifest.of_groups(self.groups):
                if file.rows:
                    yield self._whole(file)

    def _whole(self, file: ChannelFile) -> FilePart:
        path = self.channel.data / file.name
        try:
            there = path.stat()
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from None
        size = there.st_size
        if file.modified_ns not in (None, there.st_mtime_ns):
            raise _unreadable(path, "the file it came from was written to after it arrived")
        if file.bytes and size != file.bytes:
            raise _unreadable(path, f"it has {size} bytes instead of {file.bytes}")
        if file.check is not None and check_of(path) != file.check:
            raise _unreadable(path, "its checksum is another")
        return FilePart(path, 0, size, size)

    def _beat(self, end: Offset) -> FilePart | None:
        watermark_us = end.get("watermark_us")
        if self.event_time is None or not isinstance(watermark_us, int):
            return None
        path = self.beats / f"{watermark_us}.parquet"
        if not path.exists():
            _write_beat(path, self.event_time, watermark_us)
        size = path.stat().st_size
        return FilePart(path, 0, size, size, is_beat=True)

    def unread_rows(self) -> int:
        """The rows in the channel that no batch has been planned with yet.

        Every manifest is opened once for this, however often it is asked.
        """
        if self._planned_to is None:
            return 0
        while self._unread and self._unread[0][0] < self._planned_to:
            self._unread.popleft()
        start = self._unread[-1][0] + 1 if self._unread else self._planned_to
        # Not by newer(), which misses what is read and freed at this very moment.
        while (manifest := self.channel.manifest(start)) is not None:
            self._unread.append((start, manifest.rows))
            start += 1
        return sum(rows for _, rows in self._unread)

    def commit(self, end: Offset) -> None:
        """Takes note that nothing before ``end`` will be read again."""
        # One that was replaced meanwhile would free what its successor has to read again.
        self.check_owner()
        self.channel.advance(self.name, _next(end))
        keep = f"{end.get('watermark_us')}.parquet"
        for path in self.beats.glob("*.parquet"):
            if path.name != keep:
                path.unlink(missing_ok=True)


def _unreadable(path: Path, why: str) -> RunError:
    return RunError(
        f"the channel file {path} cannot be read ({why})",
        hint=RESTORE,
    )


def _write_beat(path: Path, event_time: str, watermark_us: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp = pa.array([stamp_us(watermark_us)], pa.timestamp("us", tz="UTC"))
    temporary = path.with_name(f".{path.name}")
    pq.write_table(pa.table({event_time: stamp}), temporary)
    temporary.replace(path)


def _shared_out(files: list[FilePart], tasks: int) -> list[list[FilePart]]:
    """The files shared out evenly, in order; only large ones are cut.

    >>> path = Path("a")
    >>> [len(one) for one in _shared_out([FilePart(path, 0, 5 << 20, 5 << 20)] * 4, 2)]
    [2, 2]
    """
    total = sum(file.length for file in files)
    share = max(_SMALLEST_SPLIT, -(-total // tasks))
    found: list[list[FilePart]] = []
    room = 0
    for file in files:
        at = 0
        while at < file.length:
            if room <= 0:
                found.append([])
                room = share
            left = file.length - at
            length = left if left <= room + _SMALLEST_SPLIT else room
            found[-1].append(FilePart(file.path, at, length, file.size))
            at, room = at + length, room - length
    return found


def _next(offset: Offset) -> int:
    return int(str(offset["next"]))


def _after(manifest: Manifest, before: Offset) -> Offset:
    offset: Offset = {"next": manifest.sequence + 1}
    if manifest.ended:
        return offset | {"ended": True, "watermark_us": END_OF_TIME_US}
    told = (manifest.watermark_us, before.get("watermark_us"))
    known = [one for one in told if isinstance(one, int)]
    return offset | {"watermark_us": max(known)} if known else offset
