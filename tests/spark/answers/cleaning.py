"""What a user of a Python operator would write."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc


def without_spikes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows below a hundred."""
    return batch.filter(pc.less(batch["v"], 100))


def doubled(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Every row twice, by its key and with the value times two, in batches of their own."""
    columns = [batch["k"], pc.multiply(batch["v"], 2), batch["ts"]]
    for _ in range(2):
        yield pa.RecordBatch.from_arrays(columns, names=["k", "twice", "ts"])
