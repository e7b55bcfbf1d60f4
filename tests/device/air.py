"""A broadcast without Spark: the server's part of a chain runs in the device's own engine."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.channels.channel import Channel
from penstock.channels.manifest import END_OF_TIME_US, ChannelFile, file_name
from penstock.channels.writer import Writer
from penstock.device.broadcaster import Broadcaster
from penstock.device.chain import chain_of
from penstock.device.engine import ShippedRun
from penstock.device.heard import HeardResults
from penstock.device.measuring import tables_for
from penstock.device.receiver import ReceiverProgram, Registration
from penstock.device.segments import boundary_us, can_switch
from penstock.device.splitting import served
from penstock.feeds.arrow import moment_text
from penstock.feeds.generators import generator
from penstock.lang.deployment import parse_deployment
from penstock.model.beginnings import Since, since_behind
from penstock.model.network import Deployment
from penstock.model.sources import GeneratorSource

TOKEN = "sesame"
LATENESS_US = 120_000_000

FILE = """
broadcast: {{organisation: {organisation}, bandwidth: 125000, cycle: 0.05, open: {open}, listeners: {listeners}}}
devices:
  anna: {{speed: 1.0e9, processing_power: 0.5, receiving_power: 1.0, battery: 20000, queries: [usage, peaks]}}
  ben: {{speed: 1.0e9, processing_power: 0.5, receiving_power: 1.0, queries: [usage]}}
streams:
  readings: {{source: {{generate: meters, homes: 40, days: 1, disorder: 2min}}, lateness: 2min}}
tables:
  homes: {{file: homes.csv, schema: "home string, owner string"}}
queries:
  usage:
    sql: |
      SELECT r.district, h.owner, sum(kwh * 2) AS kwh, count(*) AS n, window.end AS at
      FROM readings r JOIN homes h ON r.home = h.home WHERE kwh > 0.1
      GROUP BY r.district, h.owner, window(ts, '1 hour', '30 minutes') HAVING count(*) > 1
    device: {{cut: {cut}}}
  peaks:
    sql: SELECT ts, home, kwh FROM readings WHERE kwh > 0.6
    device: {{cut: 1}}
"""  # noqa: E501


def deployment(
    folder: Path,
    cut: int = 1,
    organisation: str = "indexed",
    listeners: int = 1,
    open: bool = False,
) -> Deployment:
    """Meters with a query that selects, joins a table and aggregates, and one that selects."""
    owners = "\n".join(f"h{at:04d},{'xyz'[at % 3]}" for at in range(40))
    (folder / "homes.csv").write_text(f"home,owner\n{owners}\n")
    text = FILE.format(
        cut=cut, organisation=organisation, listeners=listeners, open=str(open).lower()
    )
    return parse_deployment(text, "meters.yaml", folder)


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def _after(rows: pa.Table, column: str | None, moment_us: int | None) -> pa.Table:
    if moment_us is None or column is None:
        return rows
    return rows.filter(pc.greater(rows.column(column).cast(pa.int64()), moment_us))


class Server:
    """Fills the channels that are broadcast, batch by batch, as Spark would."""

    def __init__(self, folder: Path, made: Deployment, batch_rows: int = 200) -> None:
        self.folder, self.made, self.memory = folder, made, folder / "broadcast"
        source = made.network.streams[0].source
        assert isinstance(source, GeneratorSource)
        self.feed = generator(source.generator, source.options)
        assert self.feed.size is not None
        self.size, self._batch_rows = self.feed.size, batch_rows
        self.at = 0
        self.broadcast = served(made)
        self._runs: dict[str, tuple[ShippedRun, Writer, str | None]] = {}
        self._since: dict[str, tuple[int, int]] = {}
        for query in self.broadcast.network.queries:
            chain = chain_of(made.network, query.name)
            device = made.devices and made.devices.query(query.name)
            assert device and device.cut is not None
            steps = chain.shipped(0)[: device.cut]
            run = ShippedRun(steps, chain.source_shape.schema, tables_for(chain, {}))
            writer = Writer(Channel.open(folder / "channels" / query.stream), 1)
            event_time = chain.shape_at(device.cut).event_time
            self._runs[query.stream] = (run, writer, event_time)

    def whole(self, query: str) -> Counter[tuple[object, ...]]:
        """What the query gives over all rows, in one go."""
        chain = chain_of(self.made.network, query)
        run = ShippedRun(chain.shipped(0), chain.source_shape.schema, tables_for(chain, {}))
        return rows_of(run.feed(self._rows(0, self.size), END_OF_TIME_US))

    def _rows(self, start: int, stop: int) -> pa.Table:
        return self.feed.read(start, stop)

    def recut(self, broadcaster: Broadcaster, query: str, new: int) -> int:
        """Begins another segment of a query, as the system would, and plans the switch to it."""
        chain = chain_of(self.made.network, query)
        old = broadcaster.on_air()[query].cut
        high_us = self.feed.high_water_us(self.at)
        event_time = chain.source_shape.event_time
        assert high_us is not None and event_time is not None
        since = Since.after({event_time: high_us})
        for operator in chain.operators[:new]:
            since = since_behind(operator, [since])
        given = chain.shape_at(new).event_time
        assert given is not None and can_switch(chain, old, new)
        run = ShippedRun(chain.shipped(0)[:new], chain.source_shape.schema, tables_for(chain, {}))
        stream = f"{query}_at_{new}_{self.at}"
        writer = Writer(Channel.open(self.folder / "channels" / stream), 1)
        self._runs[stream] = (run, writer, given)
        self._since[stream] = (high_us, since.whole[given])
        until_us = boundary_us(chain, old, new, moment_text(since.whole[given]))
        assert until_us is not None
        broadcaster.plan_switch(query, {"cut": new, "stream": stream}, until_us)
        return until_us

    def push(self, batches: int = 1) -> None:
        """Commits batches."""
        for _ in range(batches):
            stop = min(self.at + self._batch_rows, self.size)
            rows, ended = self._rows(self.at, stop), stop == self.size
            high_us = self.feed.high_water_us(stop)
            assert high_us is not None
            watermark_us = END_OF_TIME_US if ended else high_us - LATENESS_US
            for stream, (run, writer, event_time) in self._runs.items():
                seen_us, given_us = self._since.get(stream, (None, None))
                given = run.feed(_after(rows, "ts", seen_us), watermark_us)
                given = _after(given, event_time, given_us)
                self._commit(writer, given, event_time, watermark_us, ended)
            self.at = stop
            if ended:
                return

    def push_all(self) -> None:
        while self.at < self.size:
            self.push()

    def _commit(
        self,
        writer: Writer,
        given: pa.Table,
        event_time: str | None,
        watermark_us: int,
        ended: bool,
    ) -> None:
        number = 0 if writer.last is None else writer.last.batch_id + 1
        files = []
        if given.num_rows:
            name = file_name(number, 1, 0)
            path = writer.channel.data / name
            pq.write_table(given, path)
            files = [ChannelFile(name, given.num_rows, path.stat().st_size)]
        latest = {}
        if event_time and given.num_rows:
            latest = {event_time: pc.max(given.column(event_time)).cast(pa.int64()).as_py()}
        writer.commit(number, files, watermark_us, ended, latest=latest)

    def broadcaster(self, submission: int = 1) -> Broadcaster:
        channels = self.folder / "channels"
        return Broadcaster(self.broadcast, self.memory, channels, TOKEN, submission)


@contextmanager
def on_air(broadcaster: Broadcaster) -> Iterator[Broadcaster]:
    """Runs a broadcaster in a thread."""
    over = threading.Event()
    thread = threading.Thread(target=broadcaster.run, args=(over.is_set,))
    thread.start()
    try:
        yield broadcaster
    finally:
        over.set()
        thread.join()


class Device:
    """A receiver in a thread, and the rows it has given."""

    def __init__(
        self,
        port: int,
        query: str = "usage",
        name: str = "anna",
        token: str = TOKEN,
        state: Path | None = None,
        patience_s: float = 10.0,
    ) -> None:
        self._patience_s = patience_s
        self.rows: dict[str, pa.Table] = {}
        self.heard = HeardResults({}, self._keep, state)
        registration = Registration(query, name, {"battery_j": 500.0}, lambda: token)
        self.program = ReceiverProgram(lambda: ("127.0.0.1", port), registration, self.heard)
        self._over = threading.Event()
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _keep(self, rows: pa.Table, name: str) -> None:
        self.rows[name] = rows

    def _run(self) -> None:
        try:
            self.program.run(self._over.is_set, self._patience_s)
        except Exception as error:
            self.error = error

    def stop(self) -> None:
        self._over.set()
        self.join()

    def join(self, patience_s: float = 30.0) -> None:
        self._thread.join(patience_s)
        assert not self._thread.is_alive(), self.program.record()

    @property
    def given(self) -> Counter[tuple[object, ...]]:
        found: Counter[tuple[object, ...]] = Counter()
        for table in self.rows.values():
            found.update(rows_of(table))
        return found
