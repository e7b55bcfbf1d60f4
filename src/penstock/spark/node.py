"""One node at work: fragments as streaming queries and intakes as threads, in one Spark session."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from threading import Lock

from pyspark.sql import DataFrame, SparkSession

from penstock.channels.ingest.again import Rereading
from penstock.channels.ingest.feed_ingest import FeedIngest
from penstock.channels.ingest.file_ingest import FileIngest
from penstock.channels.ingest.stepwise import StepwiseIngest
from penstock.channels.ingest.thread import IngestThread
from penstock.channels.writer import Writer
from penstock.errors import PenstockError, RunError
from penstock.kernels.engine_choice import choose_engine
from penstock.kernels.planning import LightPlan
from penstock.model.beginnings import Reread
from penstock.model.engines import EngineName
from penstock.model.fragments import Fragment
from penstock.model.ids import PartId, channel_for
from penstock.model.measurements import FragmentStatus
from penstock.model.network import Network
from penstock.model.retime import Retime
from penstock.model.sources import (
    FileSink,
    GeneratorSource,
    KafkaSink,
    KafkaSource,
    Sink,
    Stream,
)
from penstock.place.pruning import needed_columns
from penstock.place.rhythm import SHORTEST_US, round_us
from penstock.spark.bundles.light_fragments import LightFragments
from penstock.spark.checkpoints import path_of
from penstock.spark.compile import compile_fragment, counting, watermarked
from penstock.spark.failures import explained, is_passing
from penstock.spark.fragment_run import FragmentRun
from penstock.spark.jvm.channel_table import channel_frame
from penstock.spark.jvm.preloading import preload
from penstock.spark.jvm.state_files import refused_state
from penstock.spark.native_run import NativeRun
from penstock.spark.progress import selectivity
from penstock.spark.sinks.batch import BatchSink
from penstock.spark.sinks.channel_sink import ChannelSink
from penstock.spark.sinks.database_sink import DatabaseSink
from penstock.spark.sinks.file_sink import DirectorySink
from penstock.spark.sinks.retimed_sink import RetimedSink
from penstock.spark.sources.channel_reader import ChannelReader
from penstock.spark.state import StateFolder

OpenSink = Callable[[str, Sink], BatchSink | None]

_RESTARTS = 5
_LOOK_EVERY_S = 0.005

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NodeOptions:
    """How a node runs its fragments.

    ``trigger_ms``: how often a fragment looks for new rows where no query behind it allows less.
    ``retained_rows``: how much of a result is kept when nobody has registered to read it; None
    keeps all of it. ``engine``: how to run fragments whose queries do not say; None lets those be
    light that can be.
    """

    trigger_ms: int = SHORTEST_US // 1_000
    max_rows_per_batch: int = 250_000
    cores: int = 2
    retained_rows: int | None = None
    engine: EngineName | None = None


DEFAULTS = NodeOptions()


def no_sink(query: str, sink: Sink) -> BatchSink | None:
    """Delivers nothing beyond channels, files, databases and Kafka."""
    return None


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
        self._ingests: dict[PartId, IngestThread] = {}
        self._running: dict[PartId, NativeRun] = {}
        self._armed: dict[PartId, NativeRun] = {}
        self._bundled: LightFragments | None = None
        self._bundling = Lock()

    @property
    def names(self) -> frozenset[PartId]:
        """What it runs."""
        return frozenset(self._running) | frozenset(self._ingests) | self._light_names

    @property
    def _light_names(self) -> frozenset[PartId]:
        return frozenset() if self._bundled is None else self._bundled.names

    @property
    def light_idle_s(self) -> float:
        """How long ago light fragments last had rows here; infinite if they never had."""
        return inf if self._bundled is None else self._bundled.idle_s

    @property
    def _light(self) -> LightFragments:
        """The light fragments: only who has some needs what runs them."""
        with self._bundling:
            if self._bundled is None:
                self._bundled = LightFragments(
                    self._session, self._state, self._options.max_rows_per_batch
                )
            return self._bundled

    def is_light(self, network: Network, fragment: Fragment) -> bool:
        """Whether a fragment is, or would be, a member of this node's bundle."""
        return self._light_plan(network, fragment) is not None

    def _light_plan(self, network: Network, fragment: Fragment) -> LightPlan | None:
        """How to run a fragment light; None if it is a query of its own."""
        choice = choose_engine(network, fragment, self._options.engine)
        if self._state.fragment(fragment.id).engine(choice.engine) == "native":
            return None
        if choice.plan is None:
            raise RunError(
                f"{fragment.name} was run light so far and cannot be any more: {choice.reason}",
                hint="Run with --fresh to start over, or give the changed query a new name.",
            )
        return choice.plan

    def read_again(self, name: PartId, stream: Stream, again: Reread, epoch: int) -> None:
        """Makes rows of an outside stream again, in the channel called ``name``."""
        writer = Writer(self._state.channel(channel_for(name)), epoch, self._options.retained_rows)
        ingest = Rereading(stream, again, writer, self._state.stream(stream.name))
        thread = IngestThread(ingest, name)
        self._ingests[name] = thread
        thread.start()

    def start_intake(self, stream: Stream, epoch: int) -> None:
        """Brings an outside stream into its channel from now on."""
        writer = Writer(
            self._state.channel(channel_for(stream.name)), epoch, self._options.retained_rows
        )
        thread = IngestThread(self._ingest(stream, writer), stream.name)
        self._ingests[PartId(stream.name)] = thread
        thread.start()

    def _ingest(self, stream: Stream, writer: Writer) -> StepwiseIngest:
        letters = self._state.dead_letters(stream.name)
        match stream.source:
            case KafkaSource():
                # Loaded only where it is used: the Kafka client is large.
                from penstock.channels.ingest.kafka_ingest import KafkaIngest

                return KafkaIngest(stream, writer, letters)
            case GeneratorSource():
                return FeedIngest(stream, writer, self._state.stream(stream.name), letters)
            case _:
                return FileIngest(stream, writer, self._state.stream(stream.name), letters)

    def start_fragment(self, network: Network, fragment: Fragment, epoch: int) -> None:
        """Runs a fragment from where its former owner has come to, unless it has finished."""
        plan = self._light_plan(network, fragment)
        if plan is not None:
            self._start_light(network, fragment, plan, epoch)
            return
        if fragment.taps:
            raise RunError(
                f"{fragment.name} is a query of its own here, so nothing inside it can be shared",
                hint="Drop what shares it, and submit that again with --no-share.",
            )
        running = self._armed.pop(fragment.id, None)
        if running is not None and running.epoch != epoch:
            self._disarm(running)
            running = None
        if running is None:
            running = NativeRun(network, fragment, epoch)
        counted = self._state.fragment(fragment.id)
        running.rows_in_before = counted.rows_in()["rows"]
        running.rows_out_before = counted.rows_out()["rows"]
        self._running[fragment.id] = running
        try:
            self._take_over(running)
        except BaseException:
            del self._running[fragment.id]
            self._disarm(running)
            raise

    def _start_light(
        self, network: Network, fragment: Fragment, plan: LightPlan, epoch: int
    ) -> None:
        folder = self._state.fragment(fragment.id)
        # First of all: from here on nothing that a former owner does counts any more.
        folder.claim(epoch)
        outlet = NativeRun(network, fragment, epoch)
        sinks = self._sinks(outlet)
        if folder.is_finished:
            outlet.rows_in_before = folder.rows_in()["rows"]
            outlet.rows_out_before = folder.rows_out()["rows"]
            self._running[fragment.id] = outlet
            return
        round_every_us = round_us(network, fragment, 1_000 * self._options.trigger_ms)
        self._light.start(
            fragment, plan, epoch, sinks, outlet.output, round_every_us, self._taps(outlet)
        )

    def arm(self, network: Network, fragment: Fragment, epoch: int) -> None:
        """Gets a fragment to the point where it only waits for its turn.

        Its query is planned and started, held before it looks at its checkpoint, and as much of its
        state as there is by now is read. One that has not had a batch yet need not be held.
        """
        plan = self._light_plan(network, fragment)
        if plan is not None:
            self._light.read_ahead(plan)
            return
        folder = self._state.fragment(fragment.id)
        if folder.is_finished or not folder.begin(epoch):
            return
        self.disarm(fragment.id)
        running = NativeRun(network, fragment, epoch)
        self._start(running)
        self._armed[fragment.id] = running
        self._read_ahead(running)

    def _read_ahead(self, running: NativeRun) -> None:
        fragment, run = running.fragment, running.run
        assert run is not None
        checkpoint = path_of(self._state.fragment(fragment.id).path, running.epoch)
        try:
            preload(self._session, fragment, checkpoint, str(run.query.runId))
        except Exception:
            # Reading ahead is an optimisation; the move works without it.
            log.exception("the state of %s could not be read ahead", fragment.name)

    def disarm(self, name: PartId) -> None:
        """Lets go of a fragment that was armed, if it was."""
        running = self._armed.pop(name, None)
        if running is not None:
            self._disarm(running)

    def _disarm(self, running: NativeRun) -> None:
        running.closing.set()
        running.turn.set()
        if running.run is not None:
            running.run.stop()

    def _take_over(self, running: NativeRun) -> None:
        folder = self._state.fragment(running.fragment.id)
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

    def _start(self, running: NativeRun, sinks: Sequence[BatchSink] = ()) -> None:
        """Starts the query, which waits for its turn if that has not come."""
        fragment = running.fragment
        needed = needed_columns(running.network, fragment)
        running.readers = []
        inputs = {name: self._input(running, name, needed[name]) for name in fragment.inputs}
        rows = compile_fragment(self._session, fragment, inputs, needed)
        running.run = FragmentRun(
            fragment,
            rows,
            self._state.fragment(fragment.id),
            running.epoch,
            sinks,
            round_us(running.network, fragment, 1_000 * self._options.trigger_ms) // 1_000,
            running.arrived_s,
            running.rows_in,
        )

    def _input(self, running: NativeRun, stream: str, columns: tuple[str, ...]) -> DataFrame:
        shape = running.network.shapes[stream]
        # The column by which an input tells Spark the watermark; None where nobody needs it.
        event_time = shape.event_time if running.fragment.stateful and shape.watermarked else None
        begin = running.fragment.beginning.inputs.get(stream)
        given = {} if begin is None else begin.since.given
        also = {event_time, *given}
        columns = tuple(name for name in shape.schema.names if name in {*columns, *also})
        reader = self._reader(running, stream, event_time)
        running.readers.append(reader)
        rows = channel_frame(self._session, reader, shape.schema.select(columns))
        return counting(rows if event_time is None else watermarked(rows, event_time), given)

    def _reader(self, running: NativeRun, stream: str, event_time: str | None) -> ChannelReader:
        folder = self._state.fragment(running.fragment.id)
        begin = running.fragment.beginning.inputs.get(stream)
        before = begin.before if begin is not None else None
        return ChannelReader(
            channel=self._state.channel(channel_for(stream)),
            name=running.fragment.reader,
            event_time=event_time,
            beats=folder.beats(stream, running.epoch),
            max_rows=self._options.max_rows_per_batch,
            parallelism=self._options.cores,
            begin=begin,
            before=None if before is None else self._state.channel(channel_for(before)),
            may_read=lambda: not running.is_held_back,
            is_closing=running.closing.is_set,
            await_stop=running.await_stop,
            await_turn=running.await_turn,
            check_owner=lambda: folder.check_owner(running.epoch),
        )

    def _sinks(self, running: NativeRun) -> list[BatchSink]:
        fragment = running.fragment
        if fragment.is_read:
            channel = self._state.channel(fragment.channel)
            running.output = Writer(channel, running.epoch, self._options.retained_rows)
        last = fragment.operators[-1] if fragment.operators else None
        if isinstance(last, Retime) and running.output is not None:
            letters = None if last.is_copy else self._state.dead_letters(fragment.output)
            return [RetimedSink(running.output, last, letters, self._delivering(running))]
        return [*self._to_readers(running), *self._delivering(running)]

    def _to_readers(self, running: NativeRun) -> list[BatchSink]:
        fragment, sinks = running.fragment, list[BatchSink]()
        if running.output is not None:
            is_part = fragment.part is not None
            # Readers see what gathers the parts; only there groups by key are of use.
            groups = None if is_part else running.network.groups(fragment.output)
            shape = running.network.shapes[fragment.output]
            times = (
                tuple(time_column.column for time_column in shape.times)
                if shape.watermarked
                else ()
            )
            sinks.append(ChannelSink(running.output, groups, times, may_go_back=is_part))
        return sinks

    def _taps(self, running: NativeRun) -> dict[str, ChannelSink]:
        """Channels for the streams inside a fragment that others share."""
        found = {}
        shapes = {
            name: shape
            for operator in running.fragment.operators
            for name, shape in operator.outputs.items()
        }
        for stream in running.fragment.taps:
            channel = self._state.channel(channel_for(stream))
            writer = Writer(channel, running.epoch, self._options.retained_rows)
            shape = shapes[stream]
            times = (
                tuple(time_column.column for time_column in shape.times)
                if shape.watermarked
                else ()
            )
            found[stream] = ChannelSink(writer, None, times)
        return found

    def _delivering(self, running: NativeRun) -> list[BatchSink]:
        fragment, sinks = running.fragment, list[BatchSink]()
        life = self._state.fragment(fragment.id).life()
        for name in fragment.queries:
            sink = running.network.query(name).sink
            opened = None if sink is None else self._sink(running, name, life, sink)
            sinks += [] if opened is None else [opened]
        for sql_write in fragment.writes:
            sinks.append(DatabaseSink(sql_write, f"{sql_write.name}-{life}", running.epoch))
        return sinks

    def _sink(self, running: NativeRun, query: str, life: str, sink: Sink) -> BatchSink | None:
        writer = f"{query}-{life}"
        match sink:
            case FileSink():
                folder = self._state.fragment(running.fragment.id)
                epoch = running.epoch
                return DirectorySink(sink, writer, epoch, lambda: folder.check_owner(epoch))
            case KafkaSink():
                # Loaded only where it is used: the Kafka client is large.
                from penstock.spark.sinks.kafka_sink import RecordSink

                return RecordSink(sink, writer)
            case _:
                return self._open_sink(query, sink)

    def failure(self, name: PartId) -> PenstockError | None:
        """What went wrong with something this node runs, in words a person can use.

        What may pass is tried again a few times before it counts as wrong.
        """
        if name in self._ingests:
            error = self._ingests[name].failure
            return None if error is None else explained(error, name, self._state.log)
        if name in self._light_names:
            return self._light.failure(name)
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

    def is_finished(self, name: PartId) -> bool:
        """Whether everything is out that will ever come."""
        if name in self._ingests:
            return self._ingests[name].is_finished
        return self._state.fragment(name).is_finished

    def is_held_back(self, name: PartId) -> bool:
        """Whether readers that are far behind keep it from going on."""
        if name in self._ingests:
            return self._ingests[name].is_held_back
        if name in self._light_names:
            return self._light.is_held_back(name)
        return self._running[name].is_held_back

    def is_starting(self, name: PartId) -> bool:
        """Whether a fragment has not got all its readers yet."""
        if name in self._light_names:
            return False
        run = self._running[name].run
        return run is not None and run.is_starting

    def batches(self, name: PartId) -> int:
        """How many batches a fragment has got through since its very first."""
        if name in self._light_names:
            return self._light.batches(name)
        run = self._running[name].run
        progress = run.query.lastProgress if run is not None else None
        return 0 if progress is None else int(progress["batchId"]) + 1

    def has_progressed(self, name: PartId) -> bool:
        """Whether a fragment has got through a batch since it was started here."""
        if name in self._light_names:
            return self._light.batches(name) > 0
        run = self._running[name].run
        return run is None or run.query.lastProgress is not None

    def status(self, name: PartId) -> FragmentStatus:
        """How a fragment is doing."""
        if name in self._light_names:
            return self._light.status(name)
        running, folder = self._running[name], self._state.fragment(name)
        if running.run is not None:
            by_batch = running.run.rows_by_batch
            running.progress.take(running.run.query.recentProgress, by_batch)
        rows_in, rows_out = folder.rows_in()["rows"], folder.rows_out()["rows"]
        rows_in_here = rows_in - running.rows_in_before
        status = replace(
            running.progress.status(rows_in, rows_out, folder.is_finished),
            rows_in_before=running.rows_in_before,
            backlog_rows=sum(reader.unread_rows() for reader in running.readers),
            selectivity=selectivity(rows_out - running.rows_out_before, rows_in_here),
        )
        # After the backlog was counted, which looks for what is unread.
        status = replace(status, waiting_s=running.waiting_s(time.time()))
        if running.run is None:
            return status
        return running.run.latencies.told(status, time.time())

    def take_latencies_s(self, only: str | None = None) -> list[float]:
        """How old rows were when results of them were out, in the latest batches of all fragments.

        Since last asked, at most 200 a fragment; of one fragment if it is named.
        """
        taken: list[float] = [] if self._bundled is None else self._bundled.take_latencies_s(only)
        for name, running in tuple(self._running.items()):
            if running.run is not None and only in (None, name):
                taken += running.run.latencies.take()
        return taken

    def milestones(self, name: PartId) -> dict[str, float]:
        """When a fragment's checkpoint was taken over, its query started, its first batch out.

        Wall time; what has not come yet is not there. Intakes have none of these.
        """
        if name in self._light_names:
            return self._light.milestones(name)
        running = self._running.get(name)
        if running is None:
            return {}
        first_s = running.run.first_batch_s if running.run is not None else None
        return running.reached_s | ({} if first_s is None else {"first_batch_s": first_s})

    def intakes_spent_ms(self) -> dict[str, float]:
        """The processor time that each intake here has had."""
        return {
            name: round(ingest_thread.spent_ms, 1)
            for name, ingest_thread in tuple(self._ingests.items())
        }

    def reports(self, name: PartId) -> list[dict[str, object]]:
        """Spark's own reports of a fragment's latest batches; of light ones it makes none."""
        if name in self._light_names:
            return []
        run = self._running[name].run
        return [dict(report) for report in run.query.recentProgress] if run else []

    def release(self, name: PartId, patience_s: float = 0.0) -> None:
        """Stops one thing; with patience a batch under way is finished first.

        Without, it is taken up again by whoever runs the fragment next. Nothing is lost either way.
        """
        if name in self._ingests:
            self._ingests[name].stop()
            del self._ingests[name]
            return
        if name in self._light_names:
            self._light.release(name)
            return
        running = self._running[name]
        running.closing.set()
        if running.run is not None:
            _await_rest(running, running.run, patience_s)
            running.run.stop()
        # Only now: what could not be stopped is still there to be stopped again.
        del self._running[name]

    def stop(self) -> None:
        """Stops everything; a later start goes on from here."""
        for name in tuple(self._armed):
            self.disarm(name)
        for name in [*self._ingests, *self._running]:
            self.release(name)
        if self._bundled is not None:
            self._bundled.stop()


def _failure(running: NativeRun) -> BaseException | None:
    assert running.run is not None
    read = [reader.failure for reader in running.readers]
    found = [running.run.failure, *read, running.run.query.exception()]
    return next((error for error in found if error is not None), None)


def _await_rest(running: NativeRun, run: FragmentRun, patience_s: float) -> None:
    until_s = time.monotonic() + patience_s
    while time.monotonic() < until_s and run.query.isActive and not run.is_resting:
        if running.resting.wait(_LOOK_EVERY_S):
            return
