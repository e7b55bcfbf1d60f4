"""One node at work: fragments as streaming queries and intakes as threads, in one Spark session."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from threading import Event

from pyspark.sql import DataFrame, SparkSession

from penstock.errors import PenstockError, RunError
from penstock.model.fragments import Fragment
from penstock.model.measurements import FragmentStatus
from penstock.model.network import Network
from penstock.model.sources import FileSink, GeneratorSource, KafkaSink, KafkaSource, Sink, Stream
from penstock.place.pruning import needed_columns
from penstock.place.rhythm import round_us
from penstock.spark.channels.channel import Writer
from penstock.spark.checkpoints import path_of
from penstock.spark.compile import compile_fragment, watermarked
from penstock.spark.failures import explained, is_passing
from penstock.spark.fragment_run import FragmentRun
from penstock.spark.ingest.feed_ingest import FeedIngest
from penstock.spark.ingest.file_ingest import FileIngest
from penstock.spark.ingest.thread import IngestThread
from penstock.spark.preloading import preload
from penstock.spark.progress import ProgressLog
from penstock.spark.sinks.batch import BatchSink
from penstock.spark.sinks.channel_sink import ChannelSink
from penstock.spark.sinks.database_sink import TableSink
from penstock.spark.sinks.file_sink import DirectorySink
from penstock.spark.sources.channel_reader import ChannelReader
from penstock.spark.sources.channel_table import channel_frame
from penstock.spark.sources.spec import ReaderSpec
from penstock.spark.state import StateFolder
from penstock.spark.state_files import refused_state

OpenSink = Callable[[str, Sink], BatchSink | None]

_RESTARTS = 5
_UNREAD_ROWS_AT_MOST = 2_000_000
_LOOK_EVERY_S = 0.005

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NodeOptions:
    """How a node runs its fragments.

    ``trigger_ms``: how often a fragment looks for new rows where no query behind it allows less.
    ``retained_rows``: how much of a result is kept when nobody has registered to read it; None
    keeps all of it.
    """

    trigger_ms: int = 200
    max_rows_per_batch: int = 250_000
    cores: int = 2
    retained_rows: int | None = None


DEFAULTS = NodeOptions()


def is_channel(network: Network, stream: str) -> bool:
    """Whether a stream is read from a channel: all are, but those that Spark reads from Kafka."""
    if stream in network.producers:
        return True
    return not isinstance(network.stream(stream).source, KafkaSource)


def _origin(source: KafkaSource) -> dict[str, object]:
    client = None if source.client is None else str(source.client)
    return {**asdict(source), "client": client}


def no_sink(query: str, sink: Sink) -> BatchSink | None:
    """Delivers nothing beyond channels, files, databases and Kafka."""
    return None


@dataclass
class _Running:
    """A fragment that this node runs."""

    network: Network
    fragment: Fragment
    epoch: int
    turn: Event = field(default_factory=Event)
    closing: Event = field(default_factory=Event)
    readers: list[ChannelReader] = field(default_factory=list)
    output: Writer | None = None
    run: FragmentRun | None = None
    restarts: int = 0
    rows_out_before: int = 0
    reached_s: dict[str, float] = field(default_factory=dict)
    progress: ProgressLog = field(init=False)

    def __post_init__(self) -> None:
        self.progress = ProgressLog(self.fragment.name, self.fragment.stateful)

    @property
    def is_held_back(self) -> bool:
        """Whether its own readers are so far behind that it takes nothing more."""
        return self.output is not None and sum(self.output.unread()) > _UNREAD_ROWS_AT_MOST

    def await_turn(self) -> None:
        """Waits until the fragment is ours; raises if it never will be."""
        self.turn.wait()
        if self.closing.is_set():
            raise RunError(f"{self.fragment.name} is not needed here after all")

    def arrived_s(self) -> float | None:
        """When the oldest rows of the batch under way entered the system."""
        known = [one.arrived_s for one in self.readers if one.arrived_s is not None]
        return min(known, default=None)


class Node:
    """Runs what it is told to in one Spark session.

    Everything that must survive is in ``state``. Whoever starts a fragment or an intake gives the
    epoch by which it is the owner; once a higher one has been used anywhere, this one is refused.
    ``open_sink`` makes the sinks that live in this process, for queries that go to one.
    """

    def __init__(
        self,
        session: SparkSession,
        state: StateFolder,
        options: NodeOptions = DEFAULTS,
        open_sink: OpenSink = no_sink,
    ) -> None:
        self._session = session
        self._state = state
        self._options = options
        self._open_sink = open_sink
        self._ingests: dict[str, IngestThread] = {}
        self._running: dict[str, _Running] = {}
        self._armed: dict[str, _Running] = {}

    @property
    def names(self) -> frozenset[str]:
        """What it runs."""
        return frozenset(self._running) | frozenset(self._ingests)

    def start_intake(self, stream: Stream, epoch: int) -> None:
        """Brings an outside stream into its channel from now on."""
        writer = Writer(self._state.channel(stream.name), epoch, self._options.retained_rows)
        letters = self._state.dead_letters(stream.name)
        kind = FeedIngest if isinstance(stream.source, GeneratorSource) else FileIngest
        ingest = kind(stream, writer, self._state.stream(stream.name), letters)
        thread = IngestThread(ingest, stream.name)
        self._ingests[stream.name] = thread
        thread.start()

    def start_fragment(self, network: Network, fragment: Fragment, epoch: int) -> None:
        """Runs a fragment from where its former owner has come to, unless it has finished."""
        running = self._armed.pop(fragment.name, None)
        if running is not None and running.epoch != epoch:
            self._disarm(running)
            running = None
        if running is None:
            running = _Running(network, fragment, epoch)
        running.rows_out_before = self._state.fragment(fragment.name).rows_out()["rows"]
        self._running[fragment.name] = running
        try:
            self._take_over(running)
        except BaseException:
            del self._running[fragment.name]
            self._disarm(running)
            raise

    def arm(self, network: Network, fragment: Fragment, epoch: int) -> None:
        """Gets a fragment to the point where it only waits for its turn.

        Its query is planned and started, held before it looks at its checkpoint, and as much of its
        state as there is by now is read. A fragment that reads from Kafka cannot be held, and one
        that has not had a batch yet need not.
        """
        if not all(is_channel(network, name) for name in fragment.inputs):
            return
        folder = self._state.fragment(fragment.name)
        if folder.is_finished or not folder.begin(epoch):
            return
        self.disarm(fragment.name)
        running = _Running(network, fragment, epoch)
        self._start(running)
        self._armed[fragment.name] = running
        self._read_ahead(running)

    def _read_ahead(self, running: _Running) -> None:
        fragment, run = running.fragment, running.run
        assert run is not None
        checkpoint = path_of(self._state.fragment(fragment.name).path, running.epoch)
        try:
            preload(self._session, fragment, checkpoint, str(run.query.runId))
        except Exception:
            # It only makes the first batch quicker: who moves can do without.
            log.exception("the state of %s could not be read ahead", fragment.name)

    def disarm(self, name: str) -> None:
        """Lets go of a fragment that was armed, if it was."""
        running = self._armed.pop(name, None)
        if running is not None:
            self._disarm(running)

    def _disarm(self, running: _Running) -> None:
        running.closing.set()
        running.turn.set()
        if running.run is not None:
            running.run.stop()

    def _take_over(self, running: _Running) -> None:
        folder = self._state.fragment(running.fragment.name)
        # First of all: from here on nothing that a former owner does counts any more.
        folder.claim(running.epoch)
        sinks = self._sinks(running)
        if folder.is_finished:
            self._disarm(running)
            running.run = None
            return
        folder.take_over(running.epoch)
        running.reached_s.setdefault("taken_over_s", time.time())
        if running.run is not None and not running.run.query.isActive:
            running.run = None  # It was got ready and has failed since: then without that.
        if running.run is None:
            running.turn.set()
            self._start(running, sinks)
        else:
            running.run.deliver_to(sinks)
            running.turn.set()
        running.reached_s.setdefault("started_s", time.time())
        folder.forget_former(running.epoch)

    def _start(self, running: _Running, sinks: Sequence[BatchSink] = ()) -> None:
        """Starts the query, which waits for its turn if that has not come."""
        fragment = running.fragment
        needed = needed_columns(running.network, fragment)
        running.readers = []
        inputs = {name: self._input(running, name, needed[name]) for name in fragment.inputs}
        rows = compile_fragment(self._session, fragment, inputs, needed)
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", fragment.name)
        running.run = FragmentRun(
            fragment,
            rows,
            self._state.fragment(fragment.name),
            running.epoch,
            sinks,
            round_us(running.network, fragment, 1_000 * self._options.trigger_ms) // 1_000,
            running.arrived_s,
        )

    def _input(self, running: _Running, stream: str, columns: tuple[str, ...]) -> DataFrame:
        shape = running.network.shapes[stream]
        event_time = _told_time(running, stream)
        if event_time is not None and event_time not in columns:
            columns = tuple(name for name in shape.schema.names if name in {*columns, event_time})
        if is_channel(running.network, stream):
            reader = self._reader(running, stream, event_time)
            running.readers.append(reader)
            rows = channel_frame(self._session, reader, shape.schema.select(columns))
            return rows if event_time is None else watermarked(rows, event_time)
        return self._kafka_rows(running, stream, columns, event_time)

    def _reader(self, running: _Running, stream: str, event_time: str | None) -> ChannelReader:
        name = running.fragment.name
        folder = self._state.fragment(name)
        return ChannelReader(
            channel=self._state.channel(stream),
            name=name,
            event_time=event_time,
            beats=folder.beats(stream, running.epoch),
            max_rows=self._options.max_rows_per_batch,
            parallelism=self._options.cores,
            may_read=lambda: not running.is_held_back,
            is_closing=running.closing.is_set,
            await_turn=running.await_turn,
            check_owner=lambda: folder.check_owner(running.epoch),
        )

    def _kafka_rows(
        self, running: _Running, stream: str, columns: tuple[str, ...], event_time: str | None
    ) -> DataFrame:
        # Loaded only where it is used: the Kafka client is large.
        from penstock.spark.kafka import jvm_kafka_frame
        from penstock.spark.sources.source import kafka_frame

        outside = running.network.stream(stream)
        assert isinstance(outside.source, KafkaSource)
        spec = ReaderSpec(
            stream=stream,
            schema=str(outside.shape.schema),
            columns=columns,
            event_time=event_time,
            origin=_origin(outside.source),
            lateness_us=outside.lateness_us,
            idle_timeout_us=outside.idle_timeout_us,
            max_rows=self._options.max_rows_per_batch,
            parallelism=self._options.cores,
            reader=running.fragment.name,
            dead_letters=str(self._state.dead_letters(stream).folder),
            known_time=str(self._state.fragment(running.fragment.name).known_time(stream)),
        )
        by_connector = jvm_kafka_frame(self._session, spec)
        if by_connector is not None:
            return by_connector
        rows = kafka_frame(self._session, spec)
        return rows if event_time is None else watermarked(rows, event_time)

    def _sinks(self, running: _Running) -> list[BatchSink]:
        fragment, sinks = running.fragment, list[BatchSink]()
        if fragment.is_read:
            channel = self._state.channel(fragment.output)
            running.output = Writer(channel, running.epoch, self._options.retained_rows)
            groups = running.network.groups(fragment.output)
            sinks.append(ChannelSink(running.output, groups))
        life = self._state.fragment(fragment.name).life()
        for name in fragment.queries:
            sink = running.network.query(name).sink
            opened = None if sink is None else self._sink(running, name, life, sink)
            sinks += [] if opened is None else [opened]
        for one in fragment.writes:
            sinks.append(TableSink(one, f"{one.name}-{life}", running.epoch))
        return sinks

    def _sink(self, running: _Running, query: str, life: str, sink: Sink) -> BatchSink | None:
        writer = f"{query}-{life}"
        match sink:
            case FileSink():
                folder = self._state.fragment(running.fragment.name)
                epoch = running.epoch
                return DirectorySink(sink, writer, epoch, lambda: folder.check_owner(epoch))
            case KafkaSink():
                # Loaded only where it is used: the Kafka client is large.
                from penstock.spark.sinks.kafka_sink import RecordSink

                return RecordSink(sink, writer)
            case _:
                return self._open_sink(query, sink)

    def failure(self, name: str) -> PenstockError | None:
        """What went wrong with something this node runs, in words a person can use.

        What may pass is tried again a few times before it counts as wrong.
        """
        if name in self._ingests:
            error = self._ingests[name].failure
            return None if error is None else explained(error, name, self._state.log)
        running = self._running[name]
        if running.run is None or running.closing.is_set():
            return None
        # Asked first: what ends a query is known before it has ended.
        has_ended = not running.run.query.isActive
        error = _failure(running)
        if error is not None and is_passing(error) and running.restarts < _RESTARTS:
            running.restarts += 1
            former, running.run = running.run, None
            try:
                self._take_over(running)
            except BaseException:
                # Who asks again must find that it does not run.
                running.run = former
                raise
        elif error is not None:
            checkpoint = path_of(self._state.fragment(name).path, running.epoch)
            refused = refused_state(self._session, checkpoint, error)
            return refused or explained(error, name, self._state.log)
        elif has_ended and not running.run.folder.is_finished:
            return RunError(f"{name} has stopped by itself", hint=f"See {self._state.log}.")
        return None

    def is_finished(self, name: str) -> bool:
        """Whether everything is out that will ever come."""
        if name in self._ingests:
            return self._ingests[name].is_finished
        return self._state.fragment(name).is_finished

    def is_held_back(self, name: str) -> bool:
        """Whether readers that are far behind keep it from going on."""
        if name in self._ingests:
            return self._ingests[name].is_held_back
        return self._running[name].is_held_back

    def is_starting(self, name: str) -> bool:
        """Whether a fragment has not got all its readers yet."""
        run = self._running[name].run
        return run is not None and run.is_starting

    def batches(self, name: str) -> int:
        """How many batches a fragment has got through since its very first."""
        run = self._running[name].run
        progress = run.query.lastProgress if run is not None else None
        return 0 if progress is None else int(progress["batchId"]) + 1

    def has_progressed(self, name: str) -> bool:
        """Whether a fragment has got through a batch since it was started here."""
        run = self._running[name].run
        return run is None or run.query.lastProgress is not None

    def status(self, name: str) -> FragmentStatus:
        """How a fragment is doing."""
        running, folder = self._running[name], self._state.fragment(name)
        if running.run is not None:
            running.progress.take(running.run.query.recentProgress)
        rows_out = folder.rows_out()["rows"]
        status = running.progress.status(rows_out, folder.is_finished)
        status = replace(
            status,
            backlog_rows=sum(reader.unread_rows() for reader in running.readers),
            selectivity=_ratio(rows_out - running.rows_out_before, status.rows_in),
        )
        latencies = sorted(running.run.latencies_s) if running.run is not None else []
        if not latencies:
            return status
        p50, p99 = (latencies[int(share * (len(latencies) - 1))] for share in (0.5, 0.99))
        return replace(status, latency_p50_s=round(p50, 3), latency_p99_s=round(p99, 3))

    def milestones(self, name: str) -> dict[str, float]:
        """When a fragment's checkpoint was taken over, its query started, its first batch out.

        Wall time; what has not come yet is not there. Intakes have none of these.
        """
        running = self._running.get(name)
        if running is None:
            return {}
        first_s = running.run.first_batch_s if running.run is not None else None
        return running.reached_s | ({} if first_s is None else {"first_batch_s": first_s})

    def intakes_spent_ms(self) -> dict[str, float]:
        """The processor time that each intake here has had."""
        return {name: round(one.spent_ms, 1) for name, one in tuple(self._ingests.items())}

    def reports(self, name: str) -> list[dict[str, object]]:
        """Spark's own reports of a fragment's latest batches."""
        run = self._running[name].run
        return [dict(report) for report in run.query.recentProgress] if run else []

    def release(self, name: str, patience_s: float = 0.0) -> None:
        """Stops one thing; with patience a batch under way is finished first.

        Without, it is taken up again by whoever runs the fragment next. Nothing is lost either way.
        """
        if name in self._ingests:
            self._ingests[name].stop()
            del self._ingests[name]
            return
        running = self._running[name]
        running.closing.set()
        if running.run is not None:
            _await_rest(running.run, patience_s)
            running.run.stop()
        # Only now: what could not be stopped is still there to be stopped again.
        del self._running[name]

    def stop(self) -> None:
        """Stops everything; a later start goes on from here."""
        for name in tuple(self._armed):
            self.disarm(name)
        for name in [*self._ingests, *self._running]:
            self.release(name)


def _told_time(running: _Running, stream: str) -> str | None:
    """The column by which an input tells Spark the watermark; None where nobody needs it."""
    shape, fragment = running.network.shapes[stream], running.fragment
    by_rows = fragment.is_read and not is_channel(running.network, stream)
    return shape.event_time if (fragment.stateful or by_rows) and shape.watermarked else None


def _ratio(rows_out: int, rows_in: int) -> float | None:
    return round(rows_out / rows_in, 6) if rows_in else None


def _failure(running: _Running) -> BaseException | None:
    assert running.run is not None
    read = [reader.failure for reader in running.readers]
    found = [running.run.failure, *read, running.run.query.exception()]
    return next((error for error in found if error is not None), None)


def _await_rest(run: FragmentRun, patience_s: float) -> None:
    until_s = time.monotonic() + patience_s
    while time.monotonic() < until_s and run.query.isActive and not run.is_resting:
        time.sleep(_LOOK_EVERY_S)
