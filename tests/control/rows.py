"""Channels with rows in them, as a node would have written them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.channels.channel import Channel
from penstock.channels.manifest import ChannelFile
from penstock.channels.writer import Writer


class RowWriter:
    """Writes batches of rows into a channel."""

    def __init__(self, folder: Path, column: str = "x", empty: str = "", **told: Any) -> None:
        self._column, self._empty = column, empty.split()
        self.channel = Channel.open(folder)
        self._writer = Writer(self.channel, 1, **told)
        self._batches = 0

    def write(
        self, *values: object, ended: bool = False, files: int = 1, in_groups: bool = False
    ) -> None:
        """Commits a batch with one column of values; without values it has no files.

        With ``in_groups`` every file is a group.
        """
        made = []
        for k in range(files if values else 0):
            name = f"{self._batches}-{k}.parquet"
            column = list(values[k::files])
            empty = dict.fromkeys(self._empty, [None] * len(column))
            rows = pa.table({self._column: column, **empty})
            pq.write_table(rows, self.channel.data / name)
            made.append(ChannelFile(name, rows.num_rows, 10, group=k if in_groups else None))
        self._writer.commit(self._batches, made, ended=ended)
        self._batches += 1
