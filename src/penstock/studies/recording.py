"""Packets that come as often as something did that was recorded.

What was recorded are the records a network's monitor wrote in each second
(``recordings/zeek_per_second.csv``; see the notice beside it).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.feeds.packets import Packets

PACKET_SCHEMA = "ts timestamp, src string, dst string, protocol string, bytes int"
_HOSTS = 200
_ROW_GROUP = 100_000


@dataclass(frozen=True)
class Stretch:
    """A part of a recording: one of its logs, from a second on."""

    log: str
    start_s: int

    def rates_per_s(self, seconds: int, mean_per_s: float) -> list[int]:
        """How many rows come in each second, scaled to a mean.

        >>> Stretch("dns", 0).rates_per_s(4, 100)
        [50, 175, 0, 175]
        """
        counts = _counts()[self.log][self.start_s : self.start_s + seconds]
        if len(counts) < seconds or not sum(counts):
            raise ValueError(f"nothing was recorded for {seconds} s from {self}")
        scale = mean_per_s * seconds / sum(counts)
        return [round(count * scale) for count in counts]


@cache
def _counts() -> dict[str, list[int]]:
    text = (files("penstock.studies") / "recordings" / "zeek_per_second.csv").read_text()
    header, *lines = csv.reader(text.splitlines())
    return {name: [int(line[at]) for line in lines] for at, name in enumerate(header)}


def write_packets(path: Path, rates_per_s: Sequence[int], seed: int) -> int:
    """Writes packets, so many for every second and evenly spread over it; how many there are."""
    counts = np.array(rates_per_s, dtype=np.int64)
    feed = Packets(rate_per_s=counts.mean(), seconds=len(counts), hosts=_HOSTS, seed=seed)
    rows = feed.read(0, int(counts.sum()))
    at_s = np.concatenate(
        [at + np.arange(count) / max(1, count) for at, count in enumerate(counts)]
    )
    times_us = int(rows["ts"][0].value) + (at_s[: rows.num_rows] * 1e6).astype(np.int64)
    column = pa.array(times_us).cast(rows.schema.field("ts").type)
    pq.write_table(rows.set_column(0, "ts", column), path, row_group_size=_ROW_GROUP)
    return int(rows.num_rows)


def replayed(name: str, path: Path) -> str:
    """The stream of such a file, as a deployment file declares it."""
    return (
        f"  {name}:\n"
        f"    source: {{replay: {path}, format: parquet, speedup: 1}}\n"
        f"    schema: {PACKET_SCHEMA}\n"
        "    event_time: ts\n"
        "    lateness: 1s\n"
    )
