"""Results that other fragments read: batches of a channel."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from penstock.channels.files import described, write_files
from penstock.channels.manifest import ChannelFile, file_name
from penstock.channels.shared_round import SharedBatch
from penstock.channels.writer import Writer
from penstock.model.partition_groups import PartitionGroups
from penstock.spark.sinks.batch import Batch, Rows
from penstock.spark.sinks.parquet import ParquetWriter, Written, latest_times

_SHARED_ROWS = 5_000


class ChannelSink:
    """Writes each batch as Parquet files and makes them visible by one manifest.

    A batch without rows leaves a manifest only if it moves the watermark or ends the stream. The
    latest times in the columns called ``times`` are kept with it. With ``may_go_back`` the time may
    be an earlier one than before: of a part of a join that takes over what is behind it.
    """

    def __init__(
        self,
        writer: Writer,
        groups: PartitionGroups | None = None,
        times: tuple[str, ...] = (),
        may_go_back: bool = False,
    ) -> None:
        self._writer = writer
        self._groups = groups
        self._times = times
        self._may_go_back = may_go_back
        self._parquet = ParquetWriter(groups, times)

    def write(self, rows: Rows, batch: Batch) -> int:
        if isinstance(rows, pa.Table) and self._groups is None:
            return self._write_table(rows, batch)
        staging = self._writer.channel.data / f".staging-{self._writer.epoch}-{batch.id}"
        try:
            written = self._parquet.write(rows, staging)
            if not self._is_committed(batch):
                self._commit(written, batch)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return sum(file.rows for file in written)

    def _write_table(self, rows: pa.Table, batch: Batch) -> int:
        """Writes rows that are here to where they stay: nobody sees them before the commit."""
        if not self._is_committed(batch):
            self._writer.check_owner()
            files = write_files(rows, self._writer, batch.id)
            self._make_visible(files, batch, latest_times(rows, self._times))
        return int(rows.num_rows)

    def compose(self, rows: pa.Table, batch: Batch) -> SharedBatch | None:
        """The batch for a file that is shared with other channels; None where it needs its own.

        What others read is written as they need it; what is large would be carried around.
        """
        is_own = (
            self._groups is not None or rows.num_rows > _SHARED_ROWS or self._is_committed(batch)
        )
        if is_own or self._writer.channel.is_read:
            return None
        return self._writer.compose(
            batch.id,
            rows,
            batch.watermark_us,
            batch.ended,
            batch.arrived_s,
            latest_times(rows, self._times),
        )

    def take_shared(self, path: Path, composed: SharedBatch) -> None:
        """Makes a batch visible that lies in the shared file at ``path``."""
        self._writer.commit_shared(path, composed)

    def _is_committed(self, batch: Batch) -> bool:
        last = self._writer.last
        return last is not None and batch.id <= last.batch_id

    def _commit(self, written: list[Written], batch: Batch) -> None:
        # A new owner deletes what former ones were about to write.
        self._writer.check_owner()
        files = []
        for at, file in enumerate(written):
            target = self._writer.channel.data / file_name(batch.id, self._writer.epoch, at)
            file.path.replace(target)
            files.append(described(target, file.rows, file.group))
        self._make_visible(files, batch, _latest(written))

    def _make_visible(
        self, files: list[ChannelFile], batch: Batch, latest: Mapping[str, int]
    ) -> None:
        if files or batch.ended or self._moves_time(batch):
            self._writer.commit(
                batch.id,
                files,
                batch.watermark_us,
                batch.ended,
                arrived_s=batch.arrived_s,
                latest=latest,
            )

    def _moves_time(self, batch: Batch) -> bool:
        if batch.watermark_us is None:
            return False
        last = self._writer.last
        if last is None or last.watermark_us is None:
            return True
        if self._may_go_back:
            return batch.watermark_us != last.watermark_us
        return batch.watermark_us > last.watermark_us


def _latest(written: list[Written]) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in written:
        found |= {name: max(us, found.get(name, us)) for name, us in file.latest.items()}
    return found
