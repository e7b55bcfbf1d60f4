"""Reading a Kafka topic: every partition by exact offsets, JSON objects to typed rows.

An offset holds the next record of each partition (``at``). ``from`` says where partitions begin
of which nothing was read before: with it a batch that is planned once reads the same records ever
after, also when retention has meanwhile moved the topic's beginning. ``until`` is where a topic
that counts as finished ends.

Partitions are read in parallel, so there is no one arrival order by which a row could be called
late, as there is for files and generators. Each slice reports the latest event time among its
rows less the lateness as the watermark, and what is behind that in later batches is dropped by
Spark's own rule: where rows straggle by more than the lateness, results depend on the batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, Message

from penstock.errors import RunError
from penstock.feeds.json_rows import json_rows
from penstock.feeds.pieces import Reject
from penstock.spark.dead_letters import DeadLetters
from penstock.spark.kafka import (
    Marks,
    Span,
    cluster_of,
    lost,
    marks_of,
    messages,
    partitions_of,
    reading,
)
from penstock.spark.sources.beats import END_OF_TIME_US
from penstock.spark.sources.intake import Offset, Slice
from penstock.spark.sources.spec import ReaderSpec

BLOCK = 8_192
"""Offsets decoded together; slices begin at multiples of it.

So what is a block, and what its dead letters are called, does not depend on how many slices
a batch is cut into.
"""

Positions = dict[int, int]


class KafkaIntake:
    """Reads a topic from its earliest record on, each record once.

    ``finished`` topics end where they ended when they were first looked at. Records that were
    deleted before they were read are an error, never skipped.
    """

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec = spec
        self._cluster = cluster_of(spec)
        self._topic = str(spec.origin["topic"])
        self._planner: Consumer | None = None
        self._high_us: int | None = None

    def first(self) -> Offset:
        marks = self._marks()
        lows = _texts({partition: one.low for partition, one in marks.items()})
        offset: Offset = {"at": lows, "from": lows}
        if self._spec.origin.get("finished"):
            offset["until"] = _texts({partition: one.high for partition, one in marks.items()})
        return offset

    def latest(self, start: Offset, max_rows: int | None) -> Offset:
        if start.get("ended"):
            return start
        marks, at = self._marks(), _numbers(start, "at")
        until = _numbers(start, "until") if "until" in start else None
        unread = _unread(start)
        if until is None:
            new = {k: one.low for k, one in marks.items() if k not in at}
            at, unread = at | new, unread | new
        self._check_there(at, until, marks)
        ends = {k: marks[k].high for k in at} if until is None else until
        backlog = {k: min(ends[k], marks[k].high) - at[k] for k in at}
        reached = {k: at[k] + rows for k, rows in allot(backlog, max_rows).items()}
        return _after(start, reached, unread, until)

    def _marks(self) -> dict[int, Marks]:
        if self._planner is None:
            self._planner = self._cluster.consumer()
        partitions = partitions_of(self._planner, self._cluster.brokers, self._topic)
        return marks_of(self._planner, self._cluster.brokers, self._topic, partitions)

    def _check_there(
        self, at: Positions, until: Positions | None, marks: Mapping[int, Marks]
    ) -> None:
        for partition, start in at.items():
            stop = start if until is None else until[partition]
            if partition not in marks:
                raise RunError(
                    f"topic {self._topic} no longer has a partition {partition}",
                    hint="Was the topic made anew? Start afresh with --fresh.",
                )
            held = marks[partition]
            is_done = until is not None and start >= stop
            if not is_done and (held.low > start or held.high < stop):
                raise lost(self._topic, partition, Span(partition, start, stop), held)

    def slices(self, start: Offset, end: Offset) -> list[Slice]:
        begins = _numbers(start, "at") | _numbers(end, "from")
        spans = [
            Span(partition, begins[partition], stop)
            for partition, stop in _numbers(end, "at").items()
            if stop > begins[partition]
        ]
        watermark_us = end.get("watermark_us")
        assert watermark_us is None or isinstance(watermark_us, int)
        groups = cut(spans, self._spec.parallelism)
        bodies = [{"spans": [_plain(one) for one in group]} for group in groups]
        return [Slice(body) for body in bodies[:-1]] + [Slice(bodies[-1], watermark_us)]

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        self._high_us = None
        spans = part.body["spans"]
        assert isinstance(spans, list)
        if not spans:
            return
        with reading(self._cluster) as consumer:
            for span in (Span(*one) for one in spans):
                found = messages(consumer, self._cluster.brokers, self._topic, span)
                for block, members in groupby(found, lambda one: (one.offset() or 0) // BLOCK):
                    rows = self._decoded(span, max(span.start, block * BLOCK), list(members))
                    yield from rows.to_batches()

    def watermark_after(self, part: Slice) -> int | None:
        """The watermark once ``part`` has been read: known to the task only."""
        if part.watermark_us is not None:
            return part.watermark_us
        if self._high_us is None or self._spec.lateness_us is None:
            return None
        return self._high_us - self._spec.lateness_us

    def _decoded(self, span: Span, start: int, records: list[Message]) -> pa.Table:
        values = [_value(record) for record in records]
        source = f"{self._topic}[{span.partition}]"
        piece = json_rows(values, self._spec.read_schema, source, 0)
        rejects = [replace(one, line=records[one.line].offset() or 0) for one in piece.rejects]
        self._set_aside(span.partition, start, rejects)
        if self._spec.event_time is not None:
            self._take_note(piece.rows[self._spec.event_time])
        return piece.rows

    def _take_note(self, times: pa.ChunkedArray) -> None:
        latest_us = pc.max(times.cast(pa.int64())).as_py()
        if latest_us is not None:
            self._high_us = max(latest_us, latest_us if self._high_us is None else self._high_us)

    def _set_aside(self, partition: int, start: int, rejects: list[Reject]) -> None:
        # One name for each block, and nothing after the last dash but digits: letters are summed
        # by what stands before it.
        letters = DeadLetters(Path(self._spec.dead_letters))
        letters.put_rejects(f"{self._spec.reader}-{partition:05d}{start:015d}", rejects)

    def commit(self, end: Offset) -> None:
        return None


def allot(backlog: Mapping[int, int], max_rows: int | None) -> Positions:
    """How much to take of each backlog: all, or ``max_rows`` in proportion.

    >>> allot({0: 600, 1: 300, 2: 0}, 100)
    {0: 67, 1: 33, 2: 0}
    """
    total = sum(backlog.values())
    if max_rows is None or total <= max_rows:
        return dict(backlog)
    shares = {key: divmod(rows * max_rows, total) for key, rows in backlog.items()}
    left = max_rows - sum(whole for whole, _ in shares.values())
    first = sorted(shares, key=lambda key: (-shares[key][1], key))[:left]
    return {key: whole + (key in first) for key, (whole, _) in shares.items()}


def cut(spans: list[Span], count: int) -> list[list[Span]]:
    """Spans in up to ``count`` groups of about the same size, one group at least.

    Small batches make few groups. A partition is cut at multiples of ``BLOCK`` only.

    >>> cut([Span(0, 0, 20_000), Span(1, 5, 9)], 2)
    [[Span(partition=0, start=0, stop=16384)], [Span(partition=0, start=16384, stop=20000), \
Span(partition=1, start=5, stop=9)]]
    """
    total = sum(span.size for span in spans)
    count = max(1, min(count, total // BLOCK))
    groups: list[list[Span]] = [[] for _ in range(count)]
    seen = 0
    for block in (one for span in spans for one in _blocks(span)):
        group = groups[seen * count // total]
        if group and group[-1].partition == block.partition:
            group[-1] = replace(group[-1], stop=block.stop)
        else:
            group.append(block)
        seen += block.size
    return [group for group in groups if group] or [[]]


def _blocks(span: Span) -> Iterator[Span]:
    start = span.start
    while start < span.stop:
        stop = min(span.stop, (start // BLOCK + 1) * BLOCK)
        yield Span(span.partition, start, stop)
        start = stop


def _after(start: Offset, reached: Positions, unread: Positions, until: Positions | None) -> Offset:
    over = until is not None and all(reached[key] >= stop for key, stop in until.items())
    if reached == _numbers(start, "at") and not over:
        return start
    end: Offset = {"at": _texts(reached)}
    if unread:
        end["from"] = _texts(unread)
    if until is not None:
        end["until"] = _texts(until)
    return end | {"ended": True, "watermark_us": END_OF_TIME_US} if over else end


def going_on_from(start: Offset) -> Offset:
    """``start`` as the beginning of an offset with no more rows before it.

    >>> going_on_from({"at": {"0": 5, "1": 0}, "from": {"0": 3, "1": 0}})
    {'at': {'0': 5, '1': 0}, 'from': {'1': 0}}
    """
    unread = _unread(start)
    kept = {name: value for name, value in start.items() if name != "from"}
    return kept | {"from": _texts(unread)} if unread else kept


def _unread(offset: Offset) -> Positions:
    """Where partitions begin of which nothing was read up to here."""
    at = _numbers(offset, "at")
    return {key: low for key, low in _numbers(offset, "from").items() if at.get(key) == low}


def _numbers(offset: Offset, name: str) -> Positions:
    positions = offset.get(name, {})
    assert isinstance(positions, dict)
    return {int(partition): int(at) for partition, at in positions.items()}


def _texts(positions: Positions) -> dict[str, int]:
    return {str(partition): positions[partition] for partition in sorted(positions)}


def _plain(span: Span) -> list[int]:
    return [span.partition, span.start, span.stop]


def _value(record: Message) -> bytes:
    # A missing or blank value is no JSON object either, and is set aside as such.
    value = record.value()
    assert value is None or isinstance(value, bytes)
    return value if value and value.strip() else b"null"
