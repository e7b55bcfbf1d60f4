"""A whole deployment on one node: sources brought in, fragments run, results delivered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.errors import RunError
from penstock.kernels.engine_choice import choose_engine
from penstock.model.beginnings import InputStart
from penstock.model.fragments import Fragment
from penstock.model.ids import PartId, channel_for
from penstock.model.measurements import FragmentStatus
from penstock.model.network import Network
from penstock.model.sources import ConsoleSink, Sink, Stream
from penstock.place.fuse import fuse
from penstock.spark.housekeeping import release_planners
from penstock.spark.late_fragments import begun
from penstock.spark.node import DEFAULTS, Node, NodeOptions
from penstock.spark.sinks.batch import BatchSink
from penstock.spark.sinks.memory_sink import CollectedSink, ShownSink
from penstock.spark.state import StateFolder, StateLock

Show = Callable[[str, pa.Table], None]


def _show_nothing(query: str, rows: pa.Table) -> None:
    return None


class Engine:
    """Runs the fragments of one network in one Spark session.

    ``show`` is called with the rows of queries that go to the terminal. Everything that must
    survive is in ``state``: an engine started on the same folder goes on where the last stopped.
    """

    def __init__(
        self,
        session: SparkSession,
        network: Network,
        state: StateFolder,
        options: NodeOptions = DEFAULTS,
        show: Show = _show_nothing,
    ) -> None:
        state.prepare()
        self.network = network
        self.fragments = fuse(network)
        for fragment in self.fragments:
            choose_engine(network, fragment, options.engine)
        self.collected: dict[str, CollectedSink] = {}
        self._state = state
        self._cores = options.cores
        self._show = show
        self._lock = StateLock(state)
        self._epoch = state.next_epoch()
        self._node = Node(session, state, options, self._opened)
        self._settled = False

    def start(self) -> None:
        """Starts everything that has not finished already."""
        try:
            for fragment in self.fragments:
                self._state.check_plan(self.network, fragment)
            late = begun(self._state, self.network, self.fragments, self._epoch)
            self.fragments = late.fragments
            for fragment in self.fragments:
                self._register_reader(fragment)
            for stream in self.network.streams:
                if self._is_brought_in(stream):
                    self._node.start_intake(stream, self._epoch)
            for name, again in late.again.items():
                self._node.read_again(
                    PartId(name), self.network.stream(again.stream), again, self._epoch
                )
            for fragment in self.fragments:
                self._node.start_fragment(self.network, fragment, self._epoch)
                self._wait_for_readers()
        except BaseException:
            self.stop()
            raise

    def _wait_for_readers(self) -> None:
        """Waits until few enough queries are still starting: many at once starve each other."""
        while sum(map(self._node.is_starting, self._started())) >= self._cores:
            time.sleep(0.01)

    def _started(self) -> list[PartId]:
        return [fragment.id for fragment in self.fragments if fragment.id in self._node.names]

    def _register_reader(self, fragment: Fragment) -> None:
        begins = fragment.beginning.inputs
        for name in fragment.inputs:
            begin = begins.get(name, InputStart())
            if self._state.channel(channel_for(name)).register(fragment.reader):
                self._state.channel(channel_for(name)).advance(fragment.reader, begin.next)
            if begin.before is not None and not self._state.fragment(fragment.id).has_begun:
                self._state.channel(channel_for(begin.before)).register(fragment.reader)

    def _is_brought_in(self, stream: Stream) -> bool:
        return any(stream.name in fragment.inputs for fragment in self.fragments)

    def _opened(self, query: str, sink: Sink) -> BatchSink:
        if isinstance(sink, ConsoleSink):
            return ShownSink(lambda rows: self._show(query, rows))
        # A fragment that is started again goes on collecting where it was.
        return self.collected.setdefault(query, CollectedSink())

    @property
    def is_finished(self) -> bool:
        """Whether all inputs have ended and everything is out."""
        return all(self._state.fragment(fragment.id).is_finished for fragment in self.fragments)

    def check(self) -> None:
        """Raises what went wrong, in words a person can use, if anything did."""
        for name in sorted(self._node.names):
            failure = self._node.failure(name)
            if failure is not None:
                raise failure

    def status(self) -> tuple[FragmentStatus, ...]:
        """How every fragment is doing."""
        self._settle()
        return tuple(self._node.status(name) for name in self._started())

    def _settle(self) -> None:
        """Gives back what only starting needed, once every query has got going."""
        if not self._settled and all(map(self._node.has_progressed, self._started())):
            self._settled = True
            release_planners()

    def reports(self, fragment: PartId) -> list[dict[str, object]]:
        """Spark's own reports of a fragment's latest batches."""
        return self._node.reports(fragment)

    def wait(self, timeout_s: float | None = None, poll_s: float = 0.1) -> bool:
        """Waits until everything is finished; whether it is. Raises what went wrong."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.is_finished:
            self.check()
            if until is not None and time.monotonic() > until:
                return False
            time.sleep(poll_s)
        return True

    def set_aside(self) -> Mapping[str, Mapping[str, int]]:
        """How many rows of each outside stream were malformed or too late."""
        names = self.network.judged
        return {name: self._state.dead_letters(name).counts() for name in names}

    def stop(self) -> None:
        """Stops everything; nothing accepted is lost, a later start goes on from here."""
        self._node.stop()
        self._lock.release()


def run_to_end(
    session: SparkSession,
    network: Network,
    folder: Path,
    options: NodeOptions = DEFAULTS,
    timeout_s: float | None = None,
) -> dict[str, pa.Table]:
    """Runs a network over finished inputs; the rows of its in-memory queries by name."""
    engine = Engine(session, network, StateFolder(folder), options)
    try:
        engine.start()
        if not engine.wait(timeout_s):
            raise RunError(f"not finished after {timeout_s} seconds", hint="Give it more time.")
        engine.check()
    finally:
        engine.stop()
    tables = {name: sink.table() for name, sink in engine.collected.items()}
    return {name: table for name, table in tables.items() if table is not None}
