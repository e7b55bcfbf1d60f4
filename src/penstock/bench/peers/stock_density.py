"""Many windowed aggregates as one writes them by hand, each a streaming query on stock Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.peers.stock import stock_session

_SCHEMA = "ts timestamp, k string, v bigint, x double"


def arrive(rows: pa.Table, path: Path) -> None:
    """Puts rows into a directory of arrivals as one file, whole or not at all."""
    temporary = path.with_name(f".{path.name}")
    pq.write_table(rows, temporary)
    temporary.replace(path)


@contextmanager
def stock_queries(
    texts: Sequence[str], arrivals: Path, scratch: Path, cores: int, every_s: float
) -> Iterator[None]:
    """The queries over the view ``readings`` of the files in ``arrivals``, while inside."""
    session = stock_session(cores)
    readings = session.readStream.schema(_SCHEMA).parquet(str(arrivals))
    readings.withWatermark("ts", "0 seconds").createOrReplaceTempView("readings")
    try:
        for number, text in enumerate(texts):
            (
                session.sql(text)
                .writeStream.format("parquet")
                .option("checkpointLocation", str(scratch / "checkpoints" / str(number)))
                .option("path", str(scratch / "out" / str(number)))
                .trigger(processingTime=f"{int(every_s * 1000)} milliseconds")
                .start()
            )
        yield
    finally:
        for running in session.streams.active:
            running.stop()
        session.stop()
