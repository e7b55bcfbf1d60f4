"""Stock Spark's way to move a query: stop it, start it from its checkpoint in a warm session.

Run as ``python -m penstock.bench.peers.stock_handover KEYS MOVES ROUND_S``: every key comes once in
ROUND_S seconds, and its session stays open for two thirds of that. Prints the gaps in seconds and
the rows of state as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from penstock.bench.peers.stock import stock_session

_TRIGGER = "200 milliseconds"
_REST_S = 2.0
_LOOK_EVERY_S = 0.005


class _Moved:
    """One query over its lives."""

    def __init__(self, rows: DataFrame, checkpoint: Path) -> None:
        self._rows = rows
        self._checkpoint = checkpoint
        self.last_result_s: float | None = None
        self.query = self._started()

    def _started(self) -> StreamingQuery:
        writer = self._rows.writeStream.foreachBatch(self._take).trigger(processingTime=_TRIGGER)
        return writer.option("checkpointLocation", str(self._checkpoint)).start()

    def _take(self, rows: DataFrame, batch: int) -> None:
        if len(rows.collect()):
            self.last_result_s = time.monotonic()

    def moved(self) -> float:
        """Stops and starts it; the time without results."""
        self.query.stop()
        before_s = self.last_result_s
        assert before_s is not None
        self.query = self._started()
        return self.await_result(before_s) - before_s

    def await_result(self, before_s: float | None) -> float:
        """Waits for a result after that time; when it came. Raises if none ever will."""
        while self.last_result_s == before_s:
            if not self.query.isActive:
                raise RuntimeError(f"the query has ended: {self.query.exception()}")
            time.sleep(_LOOK_EVERY_S)
        assert self.last_result_s is not None
        return self.last_result_s

    def state_rows(self) -> int:
        progress = self.query.lastProgress
        operators = progress["stateOperators"] if progress else []
        return sum(operator["numRowsTotal"] for operator in operators)


def _sessions(session: SparkSession, keys: int, round_s: int) -> DataFrame:
    rate = session.readStream.format("rate").option("rowsPerSecond", max(1, keys // round_s))
    rows = rate.load().selectExpr("timestamp AS ts", f"value % {keys} AS home", "value AS kwh")
    window = F.session_window("ts", f"{round_s * 2 // 3} seconds")
    grouped = rows.withWatermark("ts", "1 second").groupBy("home", window)
    return grouped.agg(F.sum("kwh").alias("kwh"), F.count(F.lit(1)).alias("n"))


def main(arguments: list[str]) -> None:
    """Measures and prints."""
    keys, moves, round_s = map(int, arguments)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints must not mix with the answer
    # Spark lets go of a stopped query's state only after minutes; there are many of them here.
    session = stock_session(1, memory="6g")
    with tempfile.TemporaryDirectory() as folder:
        moved = _Moved(_sessions(session, keys, round_s), Path(folder) / "checkpoint")
        time.sleep(round_s)
        moved.await_result(None)
        gaps = []
        for _ in range(moves):
            time.sleep(_REST_S)
            gaps.append(moved.moved())
        answer = {"gaps_s": gaps, "state_rows": moved.state_rows()}
        moved.query.stop()
    print(json.dumps(answer), file=answers, flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
