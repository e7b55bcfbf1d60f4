"""A Kafka topic, brought into its stream's channel: one reader, however many queries read it.

All partitions are read by exact offsets, and the next offset of each is kept in the manifest of the
rows before it: what is committed is never read again, and what is not has left nothing behind.
Partitions take turns (:func:`take_turns`). Each has an order of its own, by which its rows are
late; the stream's time is that of the partition which is furthest behind (:func:`stream_time_us`).
One that has been read to its end and has brought no row in time for a while is not waited for; what
it brings later is late by the time that the stream has come to without it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from confluent_kafka import Consumer

from penstock.channels.dead_letters import DeadLetters
from penstock.channels.ingest.entrance import Entrance, JudgedRows, Reached
from penstock.channels.ingest.kafka_blocks import KafkaBlock, read_blocks
from penstock.channels.ingest.stepwise import StepwiseIngest
from penstock.channels.kafka import Marks, lost, marks_of, partitions_of
from penstock.channels.kafka_cluster import KafkaCluster
from penstock.channels.writer import Writer
from penstock.errors import RunError
from penstock.feeds.partitions import Span, block_of, latest_of, stream_time_us, take_turns
from penstock.feeds.pieces import RowForm
from penstock.model.sources import KafkaSource, Stream

_ROWS_PER_COMMIT = 200_000
_QUIET_AFTER_US = 10_000_000
"""How long a partition is waited for that brings nothing, where a stream has no idle timeout."""

Positions = Mapping[int, int]


@dataclass(frozen=True)
class KafkaProgress(Reached):
    """The next offset of each partition.

    ``until`` is where a finished topic ends. ``partitions_us`` is how far the time has come of each
    partition that has had rows, and ``quiet`` are those that are not waited for.
    """

    offsets: Positions = field(default_factory=dict)
    until: Positions | None = None
    partitions_us: Positions = field(default_factory=dict)
    quiet: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        # Read back from a manifest the numbers of partitions are texts.
        for name in ("offsets", "until", "partitions_us"):
            positions = getattr(self, name)
            if positions is not None:
                known = {int(partition): at for partition, at in positions.items()}
                object.__setattr__(self, name, known)
        object.__setattr__(self, "quiet", tuple(self.quiet))

    @property
    def furthest_us(self) -> int | None:
        return latest_of(*self.partitions_us.values(), self.high_water_us)

    @property
    def is_over(self) -> bool:
        """Whether a finished topic has been read to its end."""
        return self.until is not None and all(map(self.is_done, self.until))

    def is_done(self, partition: int) -> bool:
        """Whether a partition will never bring another row."""
        return self.until is not None and self.offsets[partition] >= self.until[partition]

    def behind(self, turns: Sequence[Span]) -> KafkaProgress:
        """The progress once these have been read."""
        read = {turn.partition: turn.stop for turn in turns}
        return replace(self, offsets={**self.offsets, **read})

    def looked_at(self, marks: Mapping[int, Marks], finished: bool) -> KafkaProgress:
        """The progress with all partitions there are: new ones begin where they begin."""
        if self.until is not None:
            return self
        new = {
            partition: held.low
            for partition, held in marks.items()
            if partition not in self.offsets
        }
        is_first = not self.offsets
        ends = (
            {partition: held.high for partition, held in marks.items()}
            if is_first and finished
            else None
        )
        return replace(self, offsets={**self.offsets, **new}, until=ends)

    def unread(self, marks: Mapping[int, Marks]) -> list[Span]:
        """What there is to be read of every partition."""
        ends = self.until or {partition: marks[partition].high for partition in self.offsets}
        return [
            Span(partition, at, ends[partition])
            for partition, at in self.offsets.items()
            if at < ends[partition]
        ]


class KafkaIngest(StepwiseIngest):
    """Brings a topic in from its earliest record on, each record once.

    A finished topic ends where it ended when it was first looked at. Records that were deleted
    before they were read are an error, never skipped.
    """

    def __init__(self, stream: Stream, writer: Writer, letters: DeadLetters) -> None:
        assert isinstance(stream.source, KafkaSource)
        super().__init__(Entrance(stream, writer, letters))
        self._stream = stream
        self._source = stream.source
        self._form = RowForm(stream.read_schema, stream.parsing)
        self._is_timed = stream.shape.event_time is not None and stream.lateness_us is not None
        self._consumer: Consumer | None = None
        self._last_row_s: dict[int, float] = {}
        self._go_back()

    def _go_back(self) -> None:
        self._progress = self._entrance.restored(KafkaProgress)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _step(self) -> bool:
        marks = self._marks()
        progress = self._progress.looked_at(marks, self._source.finished)
        _check_there(self._source.topic, progress, marks)
        for partition in progress.offsets:
            self._last_row_s.setdefault(partition, time.monotonic())
        block = block_of(len(progress.offsets), _ROWS_PER_COMMIT)
        turns = take_turns(progress.unread(marks), block, _ROWS_PER_COMMIT)
        if not turns and not progress.is_over:
            return self._let_time_pass(progress, marks)
        self._progress = self._admit(turns, progress, marks)
        return True

    def _marks(self) -> dict[int, Marks]:
        brokers, topic = self._source.brokers, self._source.topic
        if self._consumer is None:
            self._consumer = KafkaCluster(brokers, self._source.client).consumer()
        partitions = partitions_of(self._consumer, brokers, topic)
        return marks_of(self._consumer, brokers, topic, partitions)

    def _admit(
        self, turns: Sequence[Span], progress: KafkaProgress, marks: Mapping[int, Marks]
    ) -> KafkaProgress:
        """Commits the records of ``turns``; the progress after them."""
        assert self._consumer is not None
        arrived_s = time.time()
        blocks = read_blocks(self._consumer, self._source, turns, self._form)
        progress = progress.behind(turns)
        judged, progress = self._judged(blocks, progress, arrived_s)
        progress = self._timed(progress, marks)
        rejects = [reject for block in blocks for reject in block.rejects]
        judged = judged or [self._entrance.judge(self._form.no_rows(), None, None, arrived_s)]
        return self._entrance.admit_judged(judged, progress, rejects, progress.is_over, arrived_s)

    def _judged(
        self, blocks: Sequence[KafkaBlock], progress: KafkaProgress, arrived_s: float
    ) -> tuple[list[JudgedRows], KafkaProgress]:
        """The rows of every block, each judged by those before it in its partition."""
        reached_us, quiet = dict(progress.partitions_us), set(progress.quiet)
        judged: list[JudgedRows] = []
        latest_us = progress.latest_us
        for block in blocks:
            before_us = latest_of(reached_us.get(block.partition), progress.high_water_us)
            known_us = progress.latest_us if before_us is None else before_us
            rows = self._entrance.judge(block.rows, before_us, known_us, arrived_s)
            judged.append(rows)
            passed_us = rows.latest_us
            latest_us = latest_of(latest_us, passed_us)
            if self._is_timed and passed_us is not None:
                floor_us = passed_us if before_us is None else before_us
                reached_us[block.partition] = max(passed_us, floor_us)
            if rows.kept.num_rows:
                quiet.discard(block.partition)
                self._last_row_s[block.partition] = time.monotonic()
        progress = replace(progress, latest_us=latest_us, partitions_us=reached_us)
        return judged, replace(progress, quiet=tuple(sorted(quiet)))

    def _timed(self, progress: KafkaProgress, marks: Mapping[int, Marks]) -> KafkaProgress:
        """The progress with the stream's time, and with those that are not waited for any more."""
        if not self._is_timed:
            return progress
        waited_s = (self._stream.idle_timeout_us or _QUIET_AFTER_US) / 1e6
        too_long_ago_s = time.monotonic() - waited_s
        behind = {span.partition for span in progress.unread(marks)}
        silent = {
            partition
            for partition in progress.offsets
            if partition not in behind and self._last_row_s[partition] <= too_long_ago_s
        }
        quiet = silent.union(progress.quiet)
        awaited = [
            offset
            for offset in progress.offsets
            if offset not in quiet and not progress.is_done(offset)
        ]
        high_us = stream_time_us(progress.partitions_us, awaited, progress.high_water_us)
        return replace(progress, quiet=tuple(sorted(quiet)), high_water_us=high_us)

    def _let_time_pass(self, progress: KafkaProgress, marks: Mapping[int, Marks]) -> bool:
        """Commits how far time has come where it has moved on without rows; whether it has."""
        progress = self._timed(progress, marks)
        idle_us = self._entrance.idle_time_us(progress)
        progress = progress if idle_us is None else progress.moved_to(idle_us)
        has_moved = progress.high_water_us != self._progress.high_water_us
        if has_moved:
            self._entrance.record([], progress)
        self._progress = progress
        return has_moved


def _check_there(topic: str, progress: KafkaProgress, marks: Mapping[int, Marks]) -> None:
    """Raises if something is gone that was to be read."""
    for partition, start in progress.offsets.items():
        if progress.is_done(partition):
            continue
        stop = start if progress.until is None else progress.until[partition]
        if partition not in marks:
            raise RunError(
                f"topic {topic} no longer has a partition {partition}",
                hint="Was the topic made anew? Start afresh with --fresh.",
            )
        held = marks[partition]
        if held.low > start or held.high < stop:
            raise lost(topic, Span(partition, start, stop), held)
