"""One side of a join: a channel that is given batches of seeded rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa

from penstock.channels.channel import Channel
from penstock.channels.files import write_files
from penstock.channels.writer import Writer

BEGIN_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
Row = tuple[int, str | None, int]
KEYS = ("a", "b", "B", "c", None)


class Feed:
    """One side: a channel with batches of seeded rows, a second out of order at most."""

    def __init__(
        self,
        folder: Path,
        columns: Sequence[str],
        seed: int,
        batches: int,
        keys: Sequence[str | None] = KEYS,
    ) -> None:
        self.channel = Channel.open(folder)
        self.rows: list[Row] = []
        self._columns = columns
        self._writer = Writer(self.channel, 1)
        self._random = Random(seed)
        self._batches = batches
        self._keys = keys
        self._given, self._numbers = count(), count()
        self._now_us = BEGIN_US

    def give(self, rows: int = 25) -> None:
        """One more batch of two seconds; nothing more after the last."""
        number, random = next(self._given), self._random
        if number >= self._batches:
            return
        made: list[Row] = [
            (
                self._now_us + random.randrange(-SECOND_US, 2 * SECOND_US, 1_000),
                random.choice(self._keys),
                next(self._numbers),
            )
            for _ in range(rows)
        ]
        self.rows += made
        self._now_us += 2 * SECOND_US
        times, keys, numbers = zip(*made, strict=True)
        arrays = [
            pa.array(times, pa.timestamp("us", tz="UTC")),
            pa.array(keys, pa.string()),
            pa.array(numbers, pa.int64()),
        ]
        table = pa.table(dict(zip(self._columns, arrays, strict=True)))
        latest = {self._columns[0]: max(times)}
        files = write_files(table, self._writer, number)
        self._writer.commit(
            number, files, self._now_us - SECOND_US, number + 1 == self._batches, latest=latest
        )

    @property
    def has_more(self) -> bool:
        last = self.channel.last()
        return last is None or not last.ended
