"""A generator's rows, brought into their stream's channel at the generator's own pace."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.channels.dead_letters import DeadLetters
from penstock.channels.durable import create_once, read_text
from penstock.channels.ingest.entrance import Entrance, InOrder
from penstock.channels.ingest.stepwise import StepwiseIngest
from penstock.channels.writer import Writer
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.feed import Feed
from penstock.feeds.generators import generator
from penstock.model.sources import GeneratorSource, Stream

_ROWS_PER_COMMIT = 200_000


@dataclass(frozen=True)
class FeedProgress(InOrder):
    """The position of the next row."""

    at: int = 0

    @property
    def position(self) -> tuple[int, int]:
        return 0, self.at


class FeedIngest(StepwiseIngest):
    """Brings in the rows that are due, and waits while readers are far behind.

    The clock of a paced generator starts once, when its stream is first brought in, and that
    moment is kept in ``folder``: a later process goes by the same clock.
    """

    def __init__(self, stream: Stream, writer: Writer, folder: Path, letters: DeadLetters) -> None:
        assert isinstance(stream.source, GeneratorSource)
        super().__init__(Entrance(stream, writer, letters))
        self._feed: Feed = generator(stream.source.generator, stream.source.options)
        self._columns = arrow_schema(stream.shape.schema)
        self._started_s = _started(folder)
        self._go_back()

    def _go_back(self) -> None:
        self._progress = self._entrance.restored(FeedProgress)

    def _step(self) -> bool:
        at = self._progress.at
        stop = min(self._feed.due(max(0.0, time.time() - self._started_s)), at + _ROWS_PER_COMMIT)
        ended = self._feed.size is not None and stop >= self._feed.size
        if stop <= at and not ended:
            moved = self._entrance.let_time_pass(self._progress)
            self._progress = moved or self._progress
            return moved is not None
        rows = self._feed.read(at, max(at, stop)).select(self._columns.names).cast(self._columns)
        progress = replace(self._progress, at=max(at, stop))
        self._progress = self._entrance.admit(rows, progress, ended=ended)
        return True


def _started(folder: Path) -> float:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "started"
    create_once(path, repr(time.time()))
    return float(read_text(path) or path.stat().st_mtime)
