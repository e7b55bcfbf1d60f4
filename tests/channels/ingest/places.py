"""Streams of files, and all that bringing them in keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from penstock.channels.channel import Channel
from penstock.channels.dead_letters import DeadLetters
from penstock.channels.ingest.file_ingest import FileIngest
from penstock.channels.manifest import Manifest
from penstock.channels.writer import Writer
from penstock.model.schema import Schema, Shape
from penstock.model.sources import CsvLayout, DirectorySource, ReplaySource, Stream

from channels.disk import Died, dying_at

SHAPE = Shape.timed(Schema.parse("ts timestamp, n int"), "ts")
S = 1_000_000
NO_LATENESS = Shape.timed(SHAPE.schema, "ts", watermarked=False)


@dataclass
class Place:
    """A stream, the folder its files arrive in, and all that ingesting keeps."""

    root: Path
    stream: Stream
    epoch: int = 0

    @property
    def channel(self) -> Channel:
        return Channel.open(self.root / "channel")

    @property
    def letters(self) -> DeadLetters:
        return DeadLetters(self.root / "letters")

    def start(self) -> FileIngest:
        """An ingest as a new process would start it."""
        self.epoch += 1
        writer = Writer(self.channel, self.epoch)
        return FileIngest(self.stream, writer, self.root / "stream", self.letters)

    def put(self, name: str, *rows: str) -> Path:
        """A file of rows, each ``ts,n``, put there in one step."""
        folder = self.root / "in"
        folder.mkdir(exist_ok=True)
        (folder / f".{name}").write_text("ts,n\n" + "".join(f"{row}\n" for row in rows))
        return (folder / f".{name}").rename(folder / name)

    def manifests(self) -> list[Manifest]:
        return list(self.channel.newer(0))

    def rows(self) -> list[int]:
        """The numbers of all rows in the channel, in order."""
        found = []
        for manifest in self.manifests():
            for file in manifest.files:
                found += pq.read_table(self.channel.data / file.name)["n"].to_pylist()
                assert file.rows == pq.read_metadata(self.channel.data / file.name).num_rows
        return found

    def set_aside(self) -> list[str]:
        """All dead letters, in no particular order."""
        folder = self.letters.folder
        return sorted(
            line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()
        )

    def reasons(self) -> list[str]:
        return sorted(json.loads(line)["reason"] for line in self.set_aside())


def place(root: Path, lateness_us: int | None = 0, **source: object) -> Place:
    shape = NO_LATENESS if lateness_us is None else SHAPE
    given = DirectorySource(root / "in", "csv", **source)  # type: ignore[arg-type]
    (root / "in").mkdir(exist_ok=True)
    return Place(root, Stream("readings", given, shape, lateness_us))


def replay(root: Path, *rows: str, speedup: float | None = None, lateness_us: int = 0) -> Place:
    here = place(root)
    path = here.put("recorded.csv", *rows)
    source = ReplaySource(path, "csv", CsvLayout(), speedup)
    here.stream = Stream("readings", source, SHAPE, lateness_us)
    return here


def run(one: FileIngest, most_steps: int = 1_000) -> int:
    """Steps until nothing more happens; how many did something."""
    for step in range(most_steps):
        if not one.step():
            return step
    raise AssertionError("it never comes to rest")


def live_until(here: Place, death: int, after: bool) -> bool:
    """Runs until nothing more happens, or death; whether it survived."""
    try:
        with dying_at(death, after=after):
            run(here.start())
    except Died:
        return False
    return True


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return self.now_s
