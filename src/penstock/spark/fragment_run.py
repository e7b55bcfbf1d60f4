"""One fragment running as one Structured Streaming query."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from penstock.errors import PenstockError
from penstock.model.fragments import Fragment
from penstock.spark.checkpoint_files import seal
from penstock.spark.checkpoints import path_of
from penstock.spark.fragment_folder import FragmentFolder
from penstock.spark.latency_log import LatencyLog
from penstock.spark.offsets import batch_offsets
from penstock.spark.sinks.batch import Batch, BatchSink

_REMEMBERED = 200

log = logging.getLogger(__name__)


class FragmentRun:
    """A fragment's streaming query: started, watched and stopped here."""

    def __init__(
        self,
        fragment: Fragment,
        rows: DataFrame,
        folder: FragmentFolder,
        epoch: int,
        sinks: Sequence[BatchSink],
        trigger_ms: int,
        arrived_s: Callable[[], float | None],
        rows_in: Callable[[], int],
    ) -> None:
        self.fragment = fragment
        self.folder = folder
        self.epoch = epoch
        self._checkpoint = path_of(folder.path, epoch)
        self._sinks = tuple(sinks)
        self._arrived_s = arrived_s
        self._rows_in = rows_in
        self.rows_by_batch: dict[int, int] = {}
        self._failure: BaseException | None = None
        self.first_batch_s: float | None = None
        self.done_arrived_s: float | None = None
        self.latencies = LatencyLog()
        self.query: StreamingQuery = (
            rows.writeStream.queryName(f"{fragment.name}, owner {epoch}")
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=f"{trigger_ms} milliseconds")
            .foreachBatch(self._on_batch)
            .start()
        )

    def deliver_to(self, sinks: Sequence[BatchSink]) -> None:
        """Names the sinks of a query that has been waiting for its turn."""
        self._sinks = tuple(sinks)

    @property
    def failure(self) -> BaseException | None:
        """What a sink raised, if that is what stopped the query."""
        return self._failure

    @property
    def is_starting(self) -> bool:
        """Whether the query has not got all its readers yet."""
        return self.query.isActive and self.query.status["message"].startswith("Initializing")

    def _on_batch(self, rows: DataFrame, batch_id: int) -> None:
        try:
            batch = self.describe(batch_id)
            seal(self._checkpoint, batch_id)
            count = self._write(rows, batch)
            self.folder.check_owner(self.epoch)
            if count and batch.arrived_s is not None:
                self.latencies.add(time.time() - batch.arrived_s)
            self.folder.add_rows_out(batch_id, count)
            self._count_in(batch_id)
            self.first_batch_s = self.first_batch_s or time.time()
            self.done_arrived_s = batch.arrived_s
            if batch.ended:
                self.folder.finish()
        except BaseException as error:
            self._failure = error
            if isinstance(error, PenstockError):
                # Told here as well: who was replaced is stopped, and nobody asks it why it failed.
                log.info("batch %d of owner %d is not taken: %s", batch_id, self.epoch, error)
            raise

    def _count_in(self, batch_id: int) -> None:
        rows = self._rows_in()
        self.folder.add_rows_in(batch_id, rows)
        self.rows_by_batch[batch_id] = rows
        self.rows_by_batch.pop(batch_id - _REMEMBERED, None)

    def _write(self, rows: DataFrame, batch: Batch) -> int:
        if len(self._sinks) == 1:
            return self._sinks[0].write(rows, batch)
        # Computed once, handed to all: computing twice would also move the state on twice.
        rows.persist()
        try:
            counts = [sink.write(rows, batch) for sink in self._sinks]
            return counts[0]
        finally:
            rows.unpersist()

    def describe(self, batch_id: int) -> Batch:
        """What the offset log says about the batch, for the fragment's sinks."""
        offsets = batch_offsets(self._checkpoint, batch_id)
        if self.fragment.stateful:
            watermark_us = offsets.watermark_us
            ended = offsets.all_ended and offsets.time_is_over
        else:
            watermark_us = offsets.reached_us
            ended = offsets.all_ended
        if watermark_us is not None:
            watermark_us -= self.fragment.delay_us
        return Batch(batch_id, watermark_us, ended, self._arrived_s())

    @property
    def is_resting(self) -> bool:
        """Whether no batch is under way just now."""
        return not self.query.status["isTriggerActive"]

    def stop(self) -> None:
        """Ends the query; a batch under way is taken up again at the next start."""
        self.query.stop()
