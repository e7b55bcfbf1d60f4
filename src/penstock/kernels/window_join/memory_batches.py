"""Batches of a side that lie in memory: for measurements, and for trying the kernel out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, eq=False)
class MemoryBatches:
    """Tables as numbered batches; ``time`` is their column of event times.

    >>> ts = pa.array([5, 3], pa.timestamp("us", "UTC"))
    >>> batches = MemoryBatches("clicks", [pa.table({"ts": ts})], "ts")
    >>> batches.read(0).num_rows, batches.latest_us(0)
    (2, 5)
    """

    name: str
    tables: Sequence[pa.Table]
    time: str

    def read(self, number: int) -> pa.Table:
        """The rows of a batch."""
        return self.tables[number]

    def latest_us(self, number: int) -> int | None:
        """The latest event time of a batch; None if it has none."""
        times = self.tables[number][self.time].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        latest: int | None = pc.max(times).as_py()
        return latest
