"""Rows judged by an event time of their own, where they enter the channel of their stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from penstock.channels.dead_letters import DeadLetters
from penstock.channels.files import write_files
from penstock.channels.manifest import END_OF_TIME_US
from penstock.channels.writer import Writer
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.lateness import Sifted, sift
from penstock.model.retime import Retime
from penstock.spark.sinks.batch import Batch, BatchSink, Rows, collect


@dataclass(frozen=True)
class Judged:
    """How far the time of a stream had come before its newest batch, and behind it.

    ``admitted`` counts the rows that were in time.
    """

    before_us: int | None = None
    high_water_us: int | None = None
    admitted: int = 0


class RetimedSink:
    """Writes the rows of each batch that are in time, and sets the others aside.

    Rows come in the order in which they are in the channel that is read: its files are shared out
    to tasks in order, nothing on the way changes it, and Spark collects the parts in order. So what
    is late depends on the rows alone, not on how they are cut into batches. ``letters`` is None
    where another has set the same rows aside already. ``others`` take what is in time as well.
    """

    def __init__(
        self,
        writer: Writer,
        retime: Retime,
        letters: DeadLetters | None,
        others: Sequence[BatchSink] = (),
    ) -> None:
        self._writer = writer
        self._retime = retime
        self._letters = letters
        self._others = tuple(others)
        self._columns = arrow_schema(retime.output.schema)

    def write(self, rows: Rows, batch: Batch) -> int:
        table = collect(rows).select(self._columns.names).cast(self._columns)
        judged, is_new = self._judged(), not self._is_committed(batch)
        before_us = judged.high_water_us if is_new else judged.before_us
        retime = self._retime
        sifted = sift(table, retime.event_time, retime.lateness_us, before_us)
        if is_new:
            admitted = judged.admitted + sifted.kept.num_rows
            self._commit(sifted, batch, Judged(before_us, sifted.high_water_us, admitted))
        for sink in self._others:
            sink.write(sifted.kept, batch)
        return int(sifted.kept.num_rows)

    def _judged(self) -> Judged:
        last = self._writer.last
        return Judged() if last is None else Judged(**last.writer_state)  # type: ignore[arg-type]

    def _is_committed(self, batch: Batch) -> bool:
        last = self._writer.last
        return last is not None and batch.id <= last.batch_id

    def _commit(self, sifted: Sifted, batch: Batch, judged: Judged) -> None:
        # A new owner deletes what former ones were about to write.
        self._writer.check_owner()
        self._set_aside(sifted, batch)
        if not (sifted.kept.num_rows or batch.ended or judged.high_water_us != judged.before_us):
            return
        files = write_files(sifted.kept, self._writer, batch.id)
        self._writer.commit(
            batch.id,
            files,
            self._watermark_us(judged, batch),
            batch.ended,
            asdict(judged),
            batch.arrived_s,
            self._latest(judged),
        )

    def _set_aside(self, sifted: Sifted, batch: Batch) -> None:
        if self._letters is None:
            return
        part = f"ingest-{batch.id:010d}"
        self._letters.forget(part)
        self._letters.put_late(part, sifted.late, sifted.late_after_us)
        self._letters.put_untimed(part, sifted.untimed)

    def _watermark_us(self, judged: Judged, batch: Batch) -> int | None:
        if batch.ended:
            return END_OF_TIME_US
        high_us = judged.high_water_us
        return None if high_us is None else high_us - self._retime.lateness_us

    def _latest(self, judged: Judged) -> dict[str, int]:
        high_us = judged.high_water_us
        return {} if high_us is None else {self._retime.event_time: high_us}
