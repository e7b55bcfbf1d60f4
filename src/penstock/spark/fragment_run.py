"""One fragment running as one Structured Streaming query."""

from __future__ import annotations

import json
import logging
import secrets
import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from penstock.errors import PenstockError, RunError
from penstock.model.fragments import Fragment
from penstock.spark.channels.durable import (
    RESTORE,
    claim,
    claimed,
    create_once,
    numbered,
    read_number,
    read_text,
    sealed,
    write_text,
)
from penstock.spark.checkpoint_files import seal
from penstock.spark.checkpoints import (
    begin,
    forget_former,
    newest,
    path_of,
    replaced,
    take_over,
)
from penstock.spark.offsets import batch_offsets
from penstock.spark.sinks.batch import Batch, BatchSink

_REMEMBERED = 200
_BEATS = "beats-"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FragmentFolder:
    """Where a fragment keeps its checkpoints and its mark of having finished."""

    path: Path

    @property
    def has_begun(self) -> bool:
        """Whether any owner has run the fragment."""
        return newest(self.path) is not None

    def claim(self, epoch: int) -> None:
        """Makes the owner with this epoch the only one whose batches count."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.check_owner(epoch)
        claim(self.path, epoch)
        self.check_owner(epoch)

    def check_owner(self, epoch: int) -> None:
        """Raises if a newer owner has claimed the fragment."""
        current = claimed(self.path)
        if current > epoch:
            raise replaced(self.path.name, current, epoch)

    def begin(self, epoch: int) -> bool:
        """Gets the checkpoint for a coming owner ready; whether there is anything to go on from."""
        return begin(self.path, epoch)

    def life(self) -> str:
        """A name that lasts until the fragment is dropped, and never comes again.

        Sinks outside the folder know by it whose batches they have: after a fresh start batch 0
        is a new batch, not the one they already took.
        """
        path = self.path / "life"
        if not path.exists() and self.has_begun:
            raise RunError(f"the file {path} is missing", hint=RESTORE)
        create_once(path, sealed(secrets.randbits(32)))
        return f"{read_number(path):08x}"

    def take_over(self, epoch: int) -> Path:
        """The checkpoint for the owner with this epoch."""
        return take_over(self.path, epoch)

    def forget_former(self, epoch: int) -> None:
        """Deletes what owners before the last one have left."""
        forget_former(self.path, epoch)
        for other, path in numbered(self.path, _BEATS).items():
            if other < epoch:
                shutil.rmtree(path, ignore_errors=True)

    def beats(self, stream: str, epoch: int) -> Path:
        """Where the heartbeats of an owner's input lie until they are read."""
        return self.path / f"{_BEATS}{epoch}" / stream

    def known_time(self, stream: str) -> Path:
        """Where the tasks that read an input from Kafka keep how far its time has come."""
        return self.path / "known_times" / stream

    @property
    def is_finished(self) -> bool:
        return (self.path / "finished").exists()

    def finish(self) -> None:
        """Marks that the fragment's inputs have ended and everything is out."""
        write_text(self.path / "finished", "")

    def rows_out(self) -> dict[str, int]:
        """Rows out by batch so far, as far as kept: the total and the last batch counted."""
        text = read_text(self.path / "rows_out")
        if text is None:
            return {"batch": -1, "rows": 0}
        try:
            found = json.loads(text)
            return {"batch": int(found["batch"]), "rows": int(found["rows"])}
        except (ValueError, TypeError, KeyError):
            file = self.path / "rows_out"
            hint = "It only counts rows for people to see: delete it, and counting starts anew."
            raise RunError(f"the file {file} is damaged", hint=hint) from None

    def add_rows_out(self, batch_id: int, rows: int) -> None:
        """Counts a batch's rows once, however often it is offered."""
        counted = self.rows_out()
        if batch_id > counted["batch"]:
            total = counted["rows"] + rows
            text = json.dumps({"batch": batch_id, "rows": total})
            write_text(self.path / "rows_out", text, synced=False)


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
    ) -> None:
        self.fragment = fragment
        self.folder = folder
        self.epoch = epoch
        self._checkpoint = path_of(folder.path, epoch)
        self._sinks = tuple(sinks)
        self._arrived_s = arrived_s
        self._failure: BaseException | None = None
        self.first_batch_s: float | None = None
        self.latencies_s: deque[float] = deque(maxlen=_REMEMBERED)
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
                self.latencies_s.append(time.time() - batch.arrived_s)
            self.folder.add_rows_out(batch_id, count)
            self.first_batch_s = self.first_batch_s or time.time()
            if batch.ended:
                self.folder.finish()
        except BaseException as error:
            self._failure = error
            if isinstance(error, PenstockError):
                # Told here as well: who was replaced is stopped, and nobody asks it why it failed.
                log.info("batch %d of owner %d is not taken: %s", batch_id, self.epoch, error)
            raise

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
            watermark_us: int | None = offsets.watermark_us or None
            ended = offsets.all_ended and offsets.time_is_over
        else:
            # Readers that learn the time only from the rows leave it to Spark, one batch behind.
            reached_us = offsets.reached_us
            watermark_us = offsets.watermark_us or None if reached_us is None else reached_us
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
