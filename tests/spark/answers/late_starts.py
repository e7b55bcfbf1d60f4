"""A system on one node, some of whose queries come later than the others.

Streams are brought in as far as a test says; then queries are added as a controller would add them,
and everything runs to its end.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.ingest.feed_ingest import FeedIngest
from penstock.channels.ingest.file_ingest import FileIngest
from penstock.channels.writer import Writer
from penstock.control.beginning import decide_beginnings, newest, oldest
from penstock.control.codec import Codec
from penstock.control.records import Submission
from penstock.control.system import System, Unit, assemble
from penstock.model.beginnings import WHOLE, Beginning, Begun, Since, StartKind, streams_since
from penstock.model.sources import GeneratorSource
from penstock.spark.node import Node, NodeOptions
from penstock.spark.state import StateFolder

from answers.oracle import small_pieces

_PATIENCE_S = 180.0


@dataclass
class LateStarts:
    """What was submitted, and what runs of it."""

    session: SparkSession
    folder: Path
    rows_at_once: int = 15
    submissions: list[Submission] = field(default_factory=list)
    begun: dict[str, Beginning] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = StateFolder(self.folder / "state")
        self.state.prepare()
        self.node = Node(self.session, self.state, NodeOptions(20, max_rows_per_batch=30))
        self._epoch = 0

    def __enter__(self) -> LateStarts:
        return self

    def __exit__(self, *_: object) -> None:
        self.node.stop()

    @property
    def system(self) -> System:
        return assemble(self.submissions)

    def submit(self, text: str, start: StartKind = "now") -> list[Unit]:
        """Adds a deployment file; from when its fragments count is in ``begun``."""
        number = len(self.submissions) + 1
        folder, begun = str(self.folder), Begun(start)
        asked = Submission(number, f"s{number}", "yaml", text, folder, begun=begun)
        system = assemble([*self.submissions, asked])
        for unit in self._units(system, number):
            for stream in unit.reads:
                self.channel(stream).register(unit.name)
        look = oldest if start == "oldest" else newest
        made = decide_beginnings(system, number, start, lambda name: look(self.channel(name)))
        for reader, one in made.fragments.items():
            for stream, begin in one.inputs.items():
                self.channel(stream).advance(reader, begin.next)
                if begin.before is not None:
                    self.channel(begin.before).register(reader)
        self.begun |= made.fragments
        # As the catalog keeps it.
        codec = Codec(Begun)
        self.submissions.append(replace(asked, begun=codec.decode(codec.encode(made))))
        return self._units(self.system, number)

    def _units(self, system: System, number: int) -> list[Unit]:
        return [unit for unit in system.units.values() if unit.submission == number]

    def channel(self, stream: str) -> Channel:
        return self.state.channel(stream)

    def bring_in(self, batches: Mapping[str, int]) -> None:
        """Brings in so many batches more of each stream, and no further."""
        self._epoch += 1
        for name, count in batches.items():
            unit = self.system.units[name]
            assert unit.stream is not None
            writer = Writer(self.channel(name), self._epoch)
            kind = FeedIngest if isinstance(unit.stream.source, GeneratorSource) else FileIngest
            letters = self.state.dead_letters(name)
            with small_pieces(self.rows_at_once):
                ingest = kind(unit.stream, writer, self.state.stream(name), letters)
                until_s = time.monotonic() + _PATIENCE_S
                last = -1 if writer.last is None else writer.last.sequence
                while (writer.last is None or writer.last.sequence < last + count) and (
                    not ingest.is_finished
                ):
                    ingest.step()
                    assert time.monotonic() < until_s, name

    def run(self, units: list[Unit]) -> None:
        """Starts fragments, and what makes rows again for them."""
        for unit in units:
            if unit.again is not None and unit.stream is not None:
                with small_pieces(self.rows_at_once):
                    self.node.read_again(unit.name, unit.stream, unit.again, 1)
            if unit.fragment is not None:
                self.node.start_fragment(unit.network, unit.fragment, 1)

    def catch_up(self) -> None:
        """Waits until all fragments that run have read all there is."""
        until_s = time.monotonic() + _PATIENCE_S
        while any(
            self.node.status(name).backlog_rows or not self.node.batches(name)
            for name in self.node.names
        ):
            self._check(until_s)

    def finish(self) -> None:
        """Brings in all that is left of the streams, and waits until everything is out."""
        self._epoch += 1
        until_s = time.monotonic() + _PATIENCE_S
        with small_pieces(self.rows_at_once):
            for unit in self.system.units.values():
                if unit.stream is not None and unit.again is None:
                    self.node.start_intake(unit.stream, self._epoch)
            while not all(self.node.is_finished(name) for name in self.node.names):
                self._check(until_s)

    def _check(self, until_s: float) -> None:
        for name in self.node.names:
            failure = self.node.failure(name)
            if failure is not None:
                raise failure
        assert time.monotonic() < until_s, sorted(self.node.names)
        time.sleep(0.05)

    def since(self, query: str) -> Since:
        """After which times a query counts, by how its fragment begins."""
        fragment = self.system.units[query].fragment
        assert fragment is not None
        inputs = {name: one.since for name, one in fragment.beginning.inputs.items()}
        return streams_since(fragment.operators, inputs).get(query, WHOLE)

    def rows(self, query: str) -> pa.Table:
        """All that a query whose result nobody reads has given."""
        channel = self.channel(query)
        files = [file for manifest in channel.kept() for file in manifest.files]
        schema = self.system.streams[query].shape.schema
        tables = [channel.rows_of(file, list(schema.names)) for file in files]
        return pa.concat_tables(tables) if tables else pa.table({n: [] for n in schema.names})
