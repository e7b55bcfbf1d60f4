"""Reading a channel: which of its files make up the next batch, and how far time has come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.channels.channel import Channel
from penstock.channels.durable import RESTORE
from penstock.channels.files import check_of
from penstock.channels.manifest import END_OF_TIME_US, ChannelFile, Manifest
from penstock.errors import RunError
from penstock.model.beginnings import InputStart
from penstock.model.ids import ReaderId
from penstock.spark.sources.beats import stamp_us

# Opening a file costs about as much as reading this much of it.
_SMALLEST_SPLIT = 4 << 20
_AGAIN = "again"
_BEFORE = "before"


Offset = dict[str, object]
"""A JSON object; ``watermark_us`` and ``ended`` in it are what is known about the stream there.

So whoever reads Spark's offset log knows it too.
"""


@dataclass(frozen=True)
class FilePart:
    """A range of bytes of a Parquet file; whoever reads it reads the row groups in its middle."""

    path: Path
    start: int
    length: int
    size: int
    is_beat: bool = False


@dataclass(frozen=True)
class _Unread:
    """A batch that is in the channel and in no batch of the reader yet."""

    sequence: int
    rows: int
    arrived_s: float | None


def _always() -> bool:
    return True


def _never() -> bool:
    return False


def _at_once() -> None:
    return None


class HandedOver(Exception):
    """Ends a query between two batches, because others go on with the next one.

    Spark would otherwise make a batch without rows as well, for the sake of the watermark: half a
    batch more for whoever takes over. Its text tells Spark that this is how a query is stopped,
    which it would otherwise log as a failure.
    """

    def __init__(self, fragment: str) -> None:
        super().__init__(
            f"{fragment} is handed over (py4j.protocol.Py4JJavaError: An error occurred while "
            "calling for rows: java.lang.InterruptedException)"
        )


@dataclass
class ChannelReader:
    """Reads the batches of a channel in order and tells the channel how far it has come.

    An offset is a JSON object: ``next`` is the first batch not read, ``watermark_us`` and
    ``ended`` say what is known about the stream there. ``event_time`` is set when the reader must
    tell Spark the watermark, by heartbeats kept in the folder ``beats``. While ``may_read`` says
    no, nothing new is taken. Once ``is_closing`` says yes, no further batch is planned at all, and
    the query ends as soon as ``await_stop`` has seen that it is being stopped.
    With ``groups`` only the rows of those are read, of a channel that is kept in groups.
    ``begin`` says where a reader that comes later than others begins. Rows that are gone from the
    channel by then may lie in the channel ``before``, which is read first; offsets in there say so
    by ``before``.
    ``await_turn`` is called before anything is looked at, and may take its time. ``check_owner``
    raises when somebody else has taken over. ``arrived_s`` is when the oldest rows of the batch
    last planned entered the system, None if it has none; ``planned_rows`` is how many it has.
    """

    channel: Channel
    name: ReaderId
    event_time: str | None
    beats: Path
    max_rows: int = 250_000
    parallelism: int = 2
    groups: frozenset[int] | None = None
    begin: InputStart | None = None
    before: Channel | None = None
    may_read: Callable[[], bool] = _always
    is_closing: Callable[[], bool] = _never
    await_stop: Callable[[], None] = _at_once
    await_turn: Callable[[], None] = _at_once
    check_owner: Callable[[], None] = _at_once
    failure: BaseException | None = field(default=None, init=False)
    arrived_s: float | None = field(default=None, init=False)
    planned_rows: int = field(default=0, init=False)
    _has_planned: bool = field(default=False, init=False)
    _planned_to: Offset | None = field(default=None, init=False)
    _unread: dict[Path, deque[_Unread]] = field(default_factory=dict, init=False)

    def first(self) -> Offset:
        """The offset before all rows that the reader is to see."""
        if self.before is not None:
            return {"next": 0, _BEFORE: True}
        if self.begin is None:
            return {"next": self.channel.oldest()}
        offset: Offset = {"next": self.begin.next}
        last = self.channel.manifest(self.begin.next - 1) if self.begin.next else None
        # What the batch before tells of the time, in case no other one comes.
        return offset if last is None else _after(last, offset)

    def restored(self, offset: Offset) -> Offset:
        """An offset from a checkpoint; raises if it is none in a channel.

        Topics of Kafka were once read by every query for itself.
        """
        if "next" not in offset:
            raise RunError(
                f"{self.name} was begun by a version of Penstock in which queries read Kafka "
                f"themselves, and its place in {self.channel.folder.name} is not known",
                hint="Finish it with that version, or start it afresh: run with --fresh, or drop "
                "and submit it again.",
            )
        return offset

    def _log(self, offset: Offset) -> Channel:
        """The channel that an offset lies in."""
        return self.before if self.before is not None and offset.get(_BEFORE) else self.channel

    def latest(self, start: Offset) -> Offset:
        """The offset to read up to from ``start``: at most ``max_rows`` on, at least one batch."""
        if self.is_closing():
            self.await_stop()
            raise HandedOver(self.name)
        known = {name: value for name, value in start.items() if name != _AGAIN}
        end = self._reached(known) if self.may_read() else known
        is_first, self._has_planned = not self._has_planned, True
        if end != known:
            return end
        return self._told_again(start) if is_first else start

    def _reached(self, start: Offset) -> Offset:
        end, rows = start, 0
        for manifest in self._log(start).newer(_next(start)):
            rows += manifest.rows
            if end is not start and rows > self.max_rows:
                break
            end = self._past(manifest, end)
        return end

    def _past(self, manifest: Manifest, offset: Offset) -> Offset:
        """The offset behind a batch; behind the last one made again the channel itself begins."""
        if not offset.get(_BEFORE):
            return _after(manifest, offset)
        assert self.begin is not None
        is_all = manifest.ended
        has_ended = is_all and (manifest.watermark_us or 0) >= END_OF_TIME_US
        end = _after(replace(manifest, ended=has_ended), offset)
        return end | ({"next": self.begin.next} if is_all else {_BEFORE: True})

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
        self._planned_to, self.planned_rows = end, 0
        if start == end:
            return []
        tasks = _shared_out(list(self._files(start, end)), self.parallelism)
        beat = self._beat(end)
        if beat is None:
            return tasks
        return [*tasks[:-1], [*tasks[-1], beat]] if tasks else [[beat]]

    def _files(self, start: Offset, end: Offset) -> Iterator[FilePart]:
        log = self._log(start)
        # To its end, where that was reached: what comes then lies in the other channel.
        is_same = log is self._log(end)
        manifests = (
            log.manifests(_next(start), _next(end)) if is_same else [*log.newer(_next(start))]
        )
        arrived = [
            manifest.arrived_s
            for manifest in manifests
            if manifest.rows and manifest.arrived_s is not None
        ]
        self.arrived_s = min(arrived, default=None)
        files = [
            file for manifest in manifests for file in manifest.of_groups(self.groups) if file.rows
        ]
        self.planned_rows = sum(file.rows for file in files)
        for file in files:
            path = check_file(log, file)
            size = path.stat().st_size
            yield FilePart(path, 0, size, size)

    def _beat(self, end: Offset) -> FilePart | None:
        watermark_us = end.get("watermark_us")
        if self.event_time is None or not isinstance(watermark_us, int):
            return None
        path = self.beats / f"{watermark_us}.parquet"
        if not path.exists():
            _write_beat(path, self.event_time, watermark_us)
        size = path.stat().st_size
        return FilePart(path, 0, size, size, is_beat=True)

    def take_planned_rows(self) -> int:
        """How many rows the batch under way has; asked once, as the next may need none of them."""
        rows, self.planned_rows = self.planned_rows, 0
        return rows

    def unread_rows(self) -> int:
        """The rows in the channel that no batch has been planned with yet.

        Every manifest is opened once for this, however often it is asked.
        """
        if self._planned_to is None:
            return 0
        log = self._log(self._planned_to)
        unread = self._rows_from(log, _next(self._planned_to))
        if log is self.channel:
            return unread
        assert self.begin is not None
        return unread + self._rows_from(self.channel, self.begin.next)

    def _rows_from(self, log: Channel, planned_to: int) -> int:
        unread = self._unread.setdefault(log.folder, deque())
        while unread and unread[0].sequence < planned_to:
            unread.popleft()
        start = unread[-1].sequence + 1 if unread else planned_to
        # Not by newer(), which misses what is read and freed at this very moment.
        while (manifest := log.manifest(start)) is not None:
            unread.append(_Unread(start, manifest.rows, manifest.arrived_s))
            start += 1
        return sum(batch.rows for batch in unread)

    def unread_since_s(self) -> float | None:
        """When the oldest of the unread rows, as last counted, entered the system."""
        unread = [batch for log in self._unread.values() for batch in log if batch.rows]
        return min(
            (batch.arrived_s for batch in unread if batch.arrived_s is not None), default=None
        )

    def commit(self, end: Offset) -> None:
        """Takes note that nothing before ``end`` will be read again."""
        # One that was replaced meanwhile would free what its successor has to read again.
        self.check_owner()
        log = self._log(end)
        log.advance(self.name, _next(end))
        if self.before is not None and log is self.channel:
            let_go_of(self.before, self.name)
        keep = f"{end.get('watermark_us')}.parquet"
        for path in self.beats.glob("*.parquet"):
            if path.name != keep:
                path.unlink(missing_ok=True)


def check_file(log: Channel, file: ChannelFile) -> Path:
    """The path of a channel's file; raises if it is missing or damaged."""
    if file.inside is not None:
        return log.path_of(file)
    path = log.data / file.name
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
    return path


def let_go_of(before: Channel, reader: ReaderId) -> None:
    """Ends a reader of rows made again; what was made goes once nobody reads it any more."""
    before.forget(reader)
    last = before.last()
    if last is not None and before.needed_from() is None:
        before.free(range(before.oldest(), last.sequence + 1), last.sequence)


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
    known = [number for number in told if isinstance(number, int)]
    return offset | {"watermark_us": max(known)} if known else offset
