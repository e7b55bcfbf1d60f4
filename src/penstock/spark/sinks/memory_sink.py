"""Results kept in this process: for tests, notebooks and the live view."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa

from penstock.spark.sinks.batch import Batch, Rows, collect


class CollectedSink:
    """Keeps every batch as an Arrow table, by batch id."""

    def __init__(self) -> None:
        self._batches: dict[int, pa.Table] = {}
        self._changed = threading.Condition()

    def write(self, rows: Rows, batch: Batch) -> int:
        table = collect(rows)
        with self._changed:
            self._batches[batch.id] = table
            self._changed.notify_all()
        return int(table.num_rows)

    def table(self) -> pa.Table | None:
        """All rows so far, in batch order; None before the first batch."""
        with self._changed:
            tables = [self._batches[key] for key in sorted(self._batches)]
        return pa.concat_tables(tables) if tables else None


class ShownSink:
    """Hands every batch with rows to ``show``, for people to look at."""

    def __init__(self, show: Callable[[pa.Table], None]) -> None:
        self._show = show

    def write(self, rows: Rows, batch: Batch) -> int:
        table = collect(rows)
        if table.num_rows:
            self._show(table)
        return int(table.num_rows)
