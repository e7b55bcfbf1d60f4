"""A deployment in simulated time, as Spark runs it: batch by batch.

Every fragment looks for rows once a round. If there are any, a batch of them takes its turn on the
fragment's node and costs what a batch costs and what its rows cost; what comes of it is there for
the fragments that read it when the batch is done. A fragment has one batch at a time: on a full
node rounds are missed and batches grow, so that what a batch costs is shared by more rows.

``penstock study prediction`` puts this model to the test against real nodes.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.load.arrays import Ints
from penstock.model.abstract import AbstractNetwork
from penstock.sim.block import BIN_COUNT, BINS_PER_OCTAVE, SHORTEST_S
from penstock.sim.latency import Latencies
from penstock.sim.moving import HandOver
from penstock.sim.row_feeds import RowFeed
from penstock.sim.simulation import Statistics

_ROUND, _DONE = range(2)


@dataclass
class _Rows:
    """Rows that wait for a batch: how many, when the oldest came in, the work behind them."""

    count: float = 0.0
    oldest_s: float = math.inf
    work_s: float = 0.0

    def add(self, count: float, oldest_s: float, work_s: float = 0.0) -> None:
        if count > 0:
            self.count += count
            self.oldest_s = min(self.oldest_s, oldest_s)
            self.work_s = max(self.work_s, work_s)


@dataclass
class _Batched:
    """A fragment at work: what a batch and a row cost it, where it is, what waits for it."""

    batch_s: float
    row_s: float
    selectivity: float
    round_s: float
    node: int
    rows: _Rows
    readers: tuple[int, ...] = ()
    is_under_way: bool = False
    has_missed: bool = False
    is_suspended: bool = False
    rows_out: float = 0.0
    arrived: float = 0.0
    begun: int = 0
    busy_s: float = 0.0
    results: int = 0
    latency_s: float = 0.0


class MicroBatches:
    """Fragments on nodes in simulated time; can be balanced like a ``Simulation``.

    ``network`` has an operator for every fragment: its cost is that of a row, its fixed load that
    of a batch every round. ``rounds_s`` says how long a round of each is. Latency is that of the
    oldest row of a batch of results until it is out, as a running system tells it, so there is one
    for every batch.

    >>> from penstock.model.abstract import AbstractInput, AbstractNode, AbstractOperator
    >>> from penstock.sim.row_feeds import EvenRows
    >>> counting = AbstractOperator("counting", ("I",), cost_s=0.001, fixed_cpu=0.05)
    >>> network = AbstractNetwork((AbstractInput("I"),), (counting,), (AbstractNode("n"),))
    >>> batches = MicroBatches(network, EvenRows([100.0]), [0], seed=1, rounds_s={"counting": 2.0})
    >>> batches.advance(1_000)
    >>> batches.statistics().utilisation.round(2), round(batches.latencies().mean_s, 1)
    (array([0.15]), 2.3)
    """

    def __init__(
        self,
        network: AbstractNetwork,
        feed: RowFeed,
        assignment: Sequence[int] | Ints,
        seed: int,
        rounds_s: Mapping[str, float],
        hand_over: HandOver | None = None,
    ) -> None:
        self.network = network
        self.moves = 0
        self.events = 0
        self._now_s = 0.0
        self._feed = feed
        self._hand_over = hand_over or HandOver()
        self._fragments = _fragments(network, assignment, rounds_s)
        self._outside_readers = [_readers(network, one.name) for one in network.inputs]
        self._queues: list[deque[int]] = [deque() for _ in network.nodes]
        self._running: list[tuple[int, _Rows, float] | None] = [None] * len(network.nodes)
        self._node_busy_s = np.zeros(len(network.nodes))
        self._arrived = np.zeros(len(network.inputs))
        self._pulled_s = 0.0
        self._latencies = _LatencySums()
        self._last = (0.0, 0, 0.0)
        self._due: list[tuple[float, int, int, int]] = []
        # Nothing begins everything at the same moment.
        phases = np.random.default_rng([seed, 0xBA7C]).random(len(self._fragments))
        for number, one in enumerate(self._fragments):
            self._plan(_ROUND, number, float(phases[number]) * one.round_s)

    @property
    def now_s(self) -> float:
        return self._now_s

    @property
    def assignment(self) -> Ints:
        return np.array([one.node for one in self._fragments], dtype=np.int64)

    @property
    def waiting(self) -> int:
        """Rows that wait for a batch or are in one."""
        in_batches = sum(run[1].count for run in self._running if run is not None)
        return round(sum(one.rows.count for one in self._fragments) + in_batches)

    def advance(self, until_s: float) -> None:
        """Lets time pass up to and including ``until_s``."""
        while self._due and self._due[0][0] <= until_s:
            self._now_s, _, kind, number = heapq.heappop(self._due)
            if kind == _ROUND:
                self._on_round(number)
            else:
                self._on_done(number)
        self._now_s = max(self._now_s, until_s)
        self._pull()

    def statistics(self) -> Statistics:
        """What was measured since the last call."""
        last_s, last_results, last_latency_s = self._last
        period_s = self._now_s - last_s
        per_s = 1 / period_s if period_s > 0 else 0.0
        sums = self._latencies
        new = sums.count - last_results
        offered = [one.begun * one.batch_s + one.arrived * one.row_s for one in self._fragments]
        found = Statistics(
            until_s=self._now_s,
            period_s=period_s,
            input_rates=self._arrived * per_s,
            offered=np.array(offered) * per_s,
            busy=np.array([one.busy_s for one in self._fragments]) * per_s,
            utilisation=self._node_busy_s * per_s,
            waiting=self.waiting,
            results=new,
            mean_latency_s=(sums.sum_s - last_latency_s) / new if new else math.nan,
        )
        for one in self._fragments:
            one.begun, one.arrived, one.busy_s = 0, 0.0, 0.0
        self._node_busy_s[:] = 0.0
        self._arrived[:] = 0.0
        self._last = (self._now_s, sums.count, sums.sum_s)
        return found

    def latencies(self) -> Latencies:
        """The latencies of all batches of results so far."""
        return self._latencies.found()

    def sink_latencies(self) -> dict[str, tuple[int, float]]:
        """For every fragment that nobody reads: rows of results, their batches' mean latency."""
        return {
            operator.name: (round(one.rows_out), _mean(one.latency_s, one.results))
            for operator, one in zip(self.network.operators, self._fragments, strict=True)
            if not one.readers
        }

    def suspend(self, operators: Sequence[int]) -> float:
        """Stops fragments that are going to move together; gives how long that takes.

        A batch that has begun is finished where it is.
        """
        for number in operators:
            one = self._fragments[number]
            one.is_suspended = True
            if number in self._queues[one.node]:
                self._queues[one.node].remove(number)
                one.is_under_way = False
        return self._hand_over.duration_s(len(operators), 0)

    def resume(self, operator: int, node: int) -> None:
        """Starts a suspended fragment on a node, with what has come meanwhile."""
        one = self._fragments[operator]
        one.node, one.is_suspended = node, False
        self.moves += 1
        if not one.is_under_way:
            self._look(operator)

    def _plan(self, kind: int, number: int, at_s: float) -> None:
        self.events += 1
        heapq.heappush(self._due, (at_s, self.events, kind, number))

    def _on_round(self, number: int) -> None:
        one = self._fragments[number]
        self._plan(_ROUND, number, self._now_s + one.round_s)
        if one.is_under_way:
            one.has_missed = True
        elif not one.is_suspended:
            self._look(number)

    def _look(self, number: int) -> None:
        """A fragment looks for rows, and waits for its node if there are any."""
        one = self._fragments[number]
        self._pull()
        if one.rows.count <= 0:
            return
        one.is_under_way = True
        self._queues[one.node].append(number)
        if self._running[one.node] is None:
            self._start(one.node)

    def _start(self, node: int) -> None:
        """Begins the batch whose turn it is, with all rows that have come by now."""
        number = self._queues[node].popleft()
        one = self._fragments[number]
        self._pull()
        rows, one.rows = one.rows, _Rows()
        work_s = one.batch_s + rows.count * one.row_s
        took_s = work_s / self.network.nodes[node].cpu
        one.begun += 1
        one.busy_s += work_s
        self._node_busy_s[node] += took_s
        self._running[node] = (number, rows, took_s)
        self._plan(_DONE, node, self._now_s + took_s)

    def _on_done(self, node: int) -> None:
        run = self._running[node]
        assert run is not None
        number, rows, took_s = run
        one = self._fragments[number]
        self._running[node] = None
        self._hand_on(one, rows, took_s)
        one.is_under_way = False
        if one.has_missed and not one.is_suspended:
            one.has_missed = False
            self._look(number)
        if self._running[node] is None and self._queues[node]:
            self._start(node)

    def _hand_on(self, one: _Batched, rows: _Rows, took_s: float) -> None:
        out = rows.count * one.selectivity
        for reader in one.readers:
            self._arrive(self._fragments[reader], out, rows.oldest_s, rows.work_s + took_s)
        if not one.readers and out > 0:
            one.rows_out += out
            one.results += 1
            one.latency_s += self._now_s - rows.oldest_s
            self._latencies.add(self._now_s - rows.oldest_s, rows.work_s + took_s)

    def _pull(self) -> None:
        """Takes in what has come from outside by now."""
        since_s, self._pulled_s = self._pulled_s, self._now_s
        if self._now_s <= since_s:
            return
        came = self._feed.rows_until(self._now_s)
        self._arrived += came
        for at, count in enumerate(came.tolist()):
            oldest_s = since_s + (self._now_s - since_s) / (count + 1)
            for reader in self._outside_readers[at]:
                self._arrive(self._fragments[reader], count, oldest_s)

    def _arrive(self, one: _Batched, count: float, oldest_s: float, work_s: float = 0.0) -> None:
        one.rows.add(count, oldest_s, work_s)
        one.arrived += count


def _fragments(
    network: AbstractNetwork, assignment: Sequence[int] | Ints, rounds_s: Mapping[str, float]
) -> list[_Batched]:
    found = []
    for operator, node in zip(network.operators, assignment, strict=True):
        round_s = rounds_s.get(operator.name, 0.0)
        if not 0 < round_s < math.inf:
            raise InputError(
                f"fragment {operator.name} looks for rows every {round_s:g} s",
                hint="Give more than zero.",
            )
        found.append(
            _Batched(
                operator.fixed_cpu * round_s,
                operator.cost_s,
                1.0 if operator.selectivity is None else operator.selectivity,
                round_s,
                int(node),
                _Rows(),
                _readers(network, operator.name),
            )
        )
    return found


def _readers(network: AbstractNetwork, stream: str) -> tuple[int, ...]:
    """The numbers of the operators that read a stream."""
    readers = {one.name for one in network.readers[stream]}
    return tuple(at for at, one in enumerate(network.operators) if one.name in readers)


def _mean(total: float, count: int) -> float:
    return total / count if count else math.nan


class _LatencySums:
    """Latencies as they come, in little memory."""

    def __init__(self) -> None:
        self.count = 0
        self.sum_s = 0.0
        self._squares = 0.0
        self._work_s = 0.0
        self._longest_s = 0.0
        self._bins = np.zeros(BIN_COUNT, dtype=np.int64)

    def add(self, latency_s: float, work_s: float) -> None:
        self.count += 1
        self.sum_s += latency_s
        self._squares += latency_s**2
        self._work_s += work_s
        self._longest_s = max(self._longest_s, latency_s)
        octaves = math.log2(max(latency_s, SHORTEST_S) / SHORTEST_S)
        self._bins[min(BIN_COUNT - 1, int(octaves * BINS_PER_OCTAVE))] += 1

    def found(self) -> Latencies:
        return Latencies(
            self.count,
            self.sum_s,
            self._squares,
            self._work_s,
            self._longest_s,
            self._bins.copy(),
        )
