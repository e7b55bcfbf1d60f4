"""One light fragment at work: where its results go, and how it is doing."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from penstock.channels.manifest import END_OF_TIME_US
from penstock.channels.shared_round import SharedBatch
from penstock.channels.writer import Writer
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.planning import LightPlan
from penstock.kernels.window_state import LONG_AGO_US
from penstock.model.fragments import Fragment
from penstock.model.measurements import FragmentStatus
from penstock.model.schema import Shape
from penstock.spark.bundles.bundle import Delivery, Round
from penstock.spark.bundles.running import Running
from penstock.spark.fragment_folder import FragmentFolder
from penstock.spark.latency_log import LatencyLog
from penstock.spark.progress import selectivity
from penstock.spark.sinks.batch import Batch, BatchSink
from penstock.spark.sinks.channel_sink import ChannelSink

_REMEMBERED = 20


@dataclass(frozen=True)
class _RoundDone:
    """A round as a member had it."""

    ended_s: float
    rows: int
    busy_ms: float


@dataclass
class LightRun:
    """A fragment that is a member of a bundle.

    ``rows_in_before`` and ``rows_out_before`` are what owners before this one read and gave.
    ``taps`` are channels for streams inside it that others share.
    """

    fragment: Fragment
    plan: LightPlan
    epoch: int
    folder: FragmentFolder
    sinks: Sequence[BatchSink]
    output: Writer | None
    round_us: int
    rows_in_before: int = 0
    rows_out_before: int = 0
    restarts: int = 0
    is_admitted: bool = False
    taps: Mapping[str, ChannelSink] = field(default_factory=dict)
    batches: int = 0
    busy_ms: float = 0.0
    reached_s: dict[str, float] = field(default_factory=dict)
    latencies: LatencyLog = field(default_factory=LatencyLog)
    running: Running | None = None
    _read: int = field(init=False)
    _recent: deque[_RoundDone] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def __post_init__(self) -> None:
        self._read = self.rows_in_before

    def has_to_tell(self, delivery: Delivery) -> bool:
        """Whether anybody is to be told what the member has given by a round."""
        if self._has_news(delivery) or self.taps:
            return True
        self.running = delivery.running
        return False

    def _has_news(self, delivery: Delivery) -> bool:
        """Whether there is anything to be told to those who want its result."""
        if delivery.given.rows.num_rows or delivery.running.ended:
            return True
        # Some want to know how far its time has come even where there are no rows.
        return self.output is not None and self.output.channel.is_read

    def compose(self, delivery: Delivery) -> SharedBatch | None:
        """What its channel is to get, for the file of the round; None where it is told apart."""
        sink = self._channel_sink
        if sink is None or not self._has_news(delivery):
            return None
        return sink.compose(delivery.given.rows, self._batch(delivery))

    def deliver(self, delivery: Delivery, path: Path, composed: SharedBatch | None) -> None:
        """Gives the sinks what the member has given by a round.

        What is composed for its channel lies in the shared file at ``path``.
        """
        given, running = delivery.given, delivery.running
        for sink in self.sinks if self._has_news(delivery) else ():
            if composed is not None and sink is self._channel_sink:
                sink.take_shared(path, composed)
            else:
                sink.write(given.rows, self._batch(delivery))
        self._give_taps(delivery)
        self.folder.check_owner(self.epoch)
        if given.rows.num_rows and given.arrived_s is not None:
            self.latencies.add(time.time() - given.arrived_s)
        self.running = running
        if running.ended:
            # Nobody will look into a log for what has finished.
            self.folder.add_rows_in(given.batch_id, running.member.rows_in)
            self.folder.add_rows_out(given.batch_id, running.member.rows_out)
            self.folder.finish()

    def _give_taps(self, delivery: Delivery) -> None:
        """Gives those who share streams inside it their rows, and tells them how far time is."""
        for stream, sink in self.taps.items():
            rows = delivery.given.tapped.get(stream)
            if rows is None:
                rows = arrow_schema(self.shapes[stream].schema).empty_table()
            sink.write(rows, self._batch(delivery, stream))

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of all streams inside the fragment."""
        return {
            name: shape
            for operator in self.fragment.operators
            for name, shape in operator.outputs.items()
        }

    def _batch(self, delivery: Delivery, stream: str | None = None) -> Batch:
        """How a batch is told; that of a stream inside if one is named."""
        given, running = delivery.given, delivery.running
        time_us = self._watermark_us(running, stream or self.fragment.output)
        return Batch(given.batch_id, time_us, running.ended, given.arrived_s)

    @cached_property
    def _channel_sink(self) -> ChannelSink | None:
        return next((sink for sink in self.sinks if isinstance(sink, ChannelSink)), None)

    def _watermark_us(self, running: Running, stream: str) -> int | None:
        if running.ended or not self._shape_of(stream).watermarked:
            return None
        if not running.has_time:
            # A part that takes a group of which no time is known yet has to say so.
            return None if self.fragment.part is None else LONG_AGO_US
        # A part of a join may have read everything and still wait for groups of other parts.
        return min(running.watermark_us, END_OF_TIME_US) - self.fragment.delay_of_us(stream)

    def _shape_of(self, stream: str) -> Shape:
        """The shape of its result, or of a stream inside it."""
        return self.plan.output if stream == self.fragment.output else self.shapes[stream]

    def note(self, running: Running, done: Round) -> None:
        """Takes note of a round in which the member took part."""
        read, self._read = running.member.rows_in - self._read, running.member.rows_in
        self.running = running
        busy_ms = done.busy_ms.get(self.fragment.name, 0.0)
        self.busy_ms += busy_ms
        if done.batches:
            self.batches += 1
            self.reached_s.setdefault("first_batch_s", time.time())
            self._recent.append(_RoundDone(time.time(), read, busy_ms))

    def status(self, state_rows: int, backlog_rows: int, waiting_s: float | None) -> FragmentStatus:
        """How it is doing."""
        member = None if self.running is None else self.running.member
        rows_in = self.rows_in_before if member is None else member.rows_in
        rows_out = self.rows_out_before if member is None else member.rows_out
        busy = sorted(done.busy_ms for done in self._recent)
        status = FragmentStatus(
            fragment=self.fragment.name,
            rows_in=rows_in,
            rows_out=rows_out,
            rows_in_per_s=self._rows_per_s(),
            batches=self.batches,
            batch_ms=round(busy[len(busy) // 2], 2) if busy else 0.0,
            state_rows=state_rows,
            watermark_ms=self._watermark_ms(),
            is_finished=self.folder.is_finished,
            busy_ms=round(self.busy_ms),
            backlog_rows=backlog_rows,
            selectivity=selectivity(rows_out - self.rows_out_before, rows_in - self.rows_in_before),
            rows_in_before=self.rows_in_before,
            waiting_s=waiting_s,
        )
        return self.latencies.told(status, time.time())

    def _rows_per_s(self) -> float:
        if len(self._recent) < 2:
            return 0.0
        # What the first round read came in before it.
        rows = sum(done.rows for done in list(self._recent)[1:])
        passed_s = self._recent[-1].ended_s - self._recent[0].ended_s
        return rows / passed_s if passed_s > 0 else 0.0

    def _watermark_ms(self) -> int | None:
        if self.running is None or self.running.ended or not self.running.has_time:
            return None
        return self.running.watermark_us // 1_000
