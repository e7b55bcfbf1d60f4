"""The input both sides read: NEXMark events in Parquet files, as a directory of arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from penstock.feeds.feed import Feed
from penstock.feeds.generators import generator

KINDS = ("persons", "auctions", "bids")
EVENTS_PER_S = 10_000
LATENESS_S = 5


@dataclass(frozen=True)
class Workload:
    """``events`` NEXMark events, each kind in ``files`` files of its folder under ``path``."""

    path: Path
    events: int
    files: int

    def folder(self, kind: str) -> Path:
        return self.path / kind

    def rows(self, kind: str) -> int:
        """How many rows a kind has."""
        return int(_feed(kind, self.events).size or 0)

    def write(self) -> None:
        """Makes the files."""
        for kind in KINDS:
            feed = _feed(kind, self.events)
            size = self.rows(kind)
            self.folder(kind).mkdir(parents=True)
            for number in range(self.files):
                low, high = size * number // self.files, size * (number + 1) // self.files
                target = self.folder(kind) / f"{number:05d}.parquet"
                pq.write_table(feed.read(low, high), target)


def _feed(kind: str, events: int) -> Feed:
    return generator(f"nexmark.{kind}", {"events": events, "rate": EVENTS_PER_S})
