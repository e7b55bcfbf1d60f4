"""Reading a generator: rows are made where they are needed, addressed by position."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from penstock.feeds.feed import Feed
from penstock.feeds.generators import generator
from penstock.feeds.lateness import sift
from penstock.spark.channels.durable import create_once, read_text
from penstock.spark.dead_letters import DeadLetters
from penstock.spark.sources.beats import END_OF_TIME_US
from penstock.spark.sources.intake import Offset, Slice
from penstock.spark.sources.spec import ReaderSpec

_ROWS_PER_ARROW_BATCH = 32_768


class FeedIntake:
    """Reads a generator at its own pace.

    The clock of a paced generator starts once, when its stream is first read, and that moment is
    kept in the file ``started``: all readers of the stream, also after a restart, agree on it.
    """

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec = spec
        options = spec.origin["options"]
        assert isinstance(options, dict)
        self._feed: Feed = generator(str(spec.origin["generator"]), options)
        self._started_s = _started(Path(str(spec.origin["started"])))

    def first(self) -> Offset:
        return {"at": 0}

    def latest(self, start: Offset, max_rows: int | None) -> Offset:
        at = _position(start)
        stop = self._feed.due(max(0.0, time.time() - self._started_s))
        if max_rows is not None:
            stop = min(stop, at + max_rows)
        # The clock may have been set back since.
        stop = max(at, stop)
        offset: Offset = {"at": stop}
        if self._feed.size is not None and stop >= self._feed.size:
            return offset | {"ended": True, "watermark_us": END_OF_TIME_US}
        watermark_us = self._watermark_us(stop)
        return offset if watermark_us is None else offset | {"watermark_us": watermark_us}

    def _watermark_us(self, position: int) -> int | None:
        if self._spec.lateness_us is None or position == 0:
            return None
        high_us = self._feed.high_water_us(position)
        return None if high_us is None else high_us - self._spec.lateness_us

    def slices(self, start: Offset, end: Offset) -> list[Slice]:
        low, high = _position(start), _position(end)
        count = max(1, min(self._spec.parallelism, (high - low) // 5_000))
        edges = [low + (high - low) * k // count for k in range(count + 1)]
        bodies = [{"start": a, "stop": b} for a, b in pairwise(edges)]
        watermark_us = end.get("watermark_us")
        assert watermark_us is None or isinstance(watermark_us, int)
        return [Slice(body) for body in bodies[:-1]] + [Slice(bodies[-1], watermark_us)]

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        start, stop = int(str(part.body["start"])), int(str(part.body["stop"]))
        high_us = self._feed.high_water_us(start) if start else None
        for low in range(start, stop, _ROWS_PER_ARROW_BATCH):
            rows = self._feed.read(low, min(low + _ROWS_PER_ARROW_BATCH, stop))
            if self._spec.lateness_us is not None:
                sifted = sift(rows, self._feed.event_time, self._spec.lateness_us, high_us)
                high_us, rows = sifted.high_water_us, sifted.kept
                if sifted.late.num_rows:
                    self._set_aside(low, sifted.late)
            yield from rows.select(list(self._spec.columns)).to_batches()

    def _set_aside(self, position: int, late: pa.Table) -> None:
        letters = DeadLetters(Path(self._spec.dead_letters))
        letters.put_late(f"{self._spec.reader}-{position:012d}", late)

    def commit(self, end: Offset) -> None:
        return None


def _position(offset: Offset) -> int:
    return int(str(offset["at"]))


def _started(path: Path) -> float:
    path.parent.mkdir(parents=True, exist_ok=True)
    create_once(path, repr(time.time()))
    return float(read_text(path) or path.stat().st_mtime)
