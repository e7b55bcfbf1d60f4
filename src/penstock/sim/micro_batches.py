"""A deployment in simulated time, as Spark runs it: batch by batch.

Every fragment looks for rows once a round. If there are any, a batch of them takes its turn on the
fragment's node and costs what a batch costs and what its rows cost; what comes of it is there for
the fragments that read it when the batch is done. Results of windows are collected until a window
has closed, and come with the first batch after that.

Members of a bundle, which share an opening, have their batches together on each node: a round costs
the opening, and each member's share; what comes of it is there when the whole round is done. A
fragment has one batch at a time: on a full node rounds are missed and batches grow, so that what a
batch costs is shared by more rows.

``penstock study prediction`` puts this model to the test against real nodes.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.errors import InputError
from penstock.load.arrays import Ints
from penstock.load.batches import BatchWork
from penstock.model.abstract import AbstractNetwork
from penstock.sim.kept_rows import KeptRows
from penstock.sim.latency import Latencies, LatencySums
from penstock.sim.moving import HandOverTimes
from penstock.sim.row_feeds import RowFeed
from penstock.sim.simulation import Statistics

MEASURED_PAUSES = HandOverTimes(base_s=0.27, operator_s=0.0, state_s=1.5e-6)
"""How long a fragment stands still when it moves: ``penstock bench handover`` had medians from
0.27 s with 1,000 keys to 0.56 s with 200,000. Several that move together do so at the same time."""

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


@dataclass(frozen=True)
class _Shared:
    """What a round of some fragments on one node costs however many they are."""

    batch_s: float
    row_s: float
    round_s: float
    fragments: tuple[int, ...]


@dataclass(frozen=True)
class _Turn:
    """A batch of a fragment, or a round of those that share an opening on a node.

    ``work_s`` is what each of the fragments costs, ``took_s`` how long all of it takes the node.
    """

    number: int
    fragments: tuple[int, ...]
    rows: tuple[_Rows, ...]
    work_s: tuple[float, ...]
    took_s: float


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
    is_suspended: bool = False
    rows_out: float = 0.0
    arrived: float = 0.0
    begun: int = 0
    busy_s: float = 0.0
    results: int = 0
    latency_s: float = 0.0
    shared: int | None = None
    is_in_batch: bool = False
    gives_every_s: float | None = None
    kept: KeptRows = field(default_factory=KeptRows)
    collected: float = 0.0
    closed: int = 0

    def give(self, made: float, now_s: float) -> float:
        """The rows that come of a batch that made so many: those of windows once they close."""
        if self.gives_every_s is None:
            return made
        self.collected += made
        closed = int(now_s / self.gives_every_s)
        if closed == self.closed:
            return 0.0
        self.closed = closed
        given, self.collected = self.collected, 0.0
        return given

    def takes_part(self, node: int) -> bool:
        """Whether it can have a part in a round of a node: it may still be in one elsewhere."""
        return self.node == node and not self.is_suspended and not self.is_in_batch


class MicroBatches:
    """Fragments on nodes in simulated time; can be balanced like a ``Simulation``.

    ``network`` has an operator for every fragment: its cost is that of a row, its fixed load that
    of a batch every round. ``work`` says how long a round of each is and what it remembers; those
    that share an opening have rounds as short as the shortest of theirs. Latency is that of the
    oldest row of a batch of results until it is out, as a running system tells it, so there is one
    for every batch that gives some.

    >>> from penstock.load.batches import BatchWork
    >>> from penstock.model.abstract import AbstractInput, AbstractNode, AbstractOperator
    >>> from penstock.sim.row_feeds import EvenRows
    >>> counting = AbstractOperator("counting", ("I",), cost_s=0.001, fixed_cpu=0.05)
    >>> network = AbstractNetwork((AbstractInput("I"),), (counting,), (AbstractNode("n"),))
    >>> work = {"counting": BatchWork(round_s=2.0)}
    >>> batches = MicroBatches(network, EvenRows([100.0]), [0], 1, work)
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
        work: Mapping[str, BatchWork],
        hand_over: HandOverTimes = MEASURED_PAUSES,
    ) -> None:
        self.network = network
        self.moves = 0
        self.events = 0
        self._now_s = 0.0
        self._feed = feed
        self._hand_over = hand_over
        self._fragments = _fragments(network, assignment, work)
        self._shared = _shared(network, self._fragments)
        self._outside_readers = [_readers(network, stream.name) for stream in network.inputs]
        self._queues: list[deque[int]] = [deque() for _ in network.nodes]
        self._running: list[_Turn | None] = [None] * len(network.nodes)
        self._node_busy_s = np.zeros(len(network.nodes))
        self._spent_until_s = np.zeros(len(network.nodes))
        self._arrived = np.zeros(len(network.inputs))
        self._pulled_s = 0.0
        self._latencies = LatencySums()
        self._last = (0.0, 0, 0.0)
        self._due: list[tuple[float, int, int, int]] = []
        self._under_way: set[int] = set()
        self._missed: set[int] = set()
        # Nothing begins everything at the same moment.
        phases = np.random.default_rng([seed, 0xBA7C]).random(len(self._fragments))
        for number, batched in enumerate(self._fragments):
            if batched.shared is None:
                self._plan(_ROUND, number, float(phases[number]) * batched.round_s)
        for at, shared in enumerate(self._shared):
            phase = float(phases[shared.fragments[0]])
            for node in range(len(network.nodes)):
                self._plan(_ROUND, self._turn_of(at, node), phase * shared.round_s)

    def _turn_of(self, shared: int, node: int) -> int:
        """The number by which the rounds of an opening on a node wait for their turn."""
        return len(self._fragments) + shared * len(self.network.nodes) + node

    def _turn(self, number: int) -> tuple[_Shared | None, int, tuple[int, ...]]:
        """Whose turn a number stands for: the opening, the node, and the fragments there."""
        if number < len(self._fragments):
            batched = self._fragments[number]
            return None, batched.node, () if batched.is_suspended else (number,)
        at, node = divmod(number - len(self._fragments), len(self.network.nodes))
        shared = self._shared[at]
        here = (number for number in shared.fragments if self._fragments[number].takes_part(node))
        return shared, node, tuple(here)

    def _number_of(self, fragment: int) -> int:
        """The number by which a fragment waits for its turn where it is."""
        batched = self._fragments[fragment]
        return fragment if batched.shared is None else self._turn_of(batched.shared, batched.node)

    @property
    def now_s(self) -> float:
        return self._now_s

    @property
    def assignment(self) -> Ints:
        return np.array([fragment.node for fragment in self._fragments], dtype=np.int64)

    @property
    def waiting(self) -> int:
        """Rows that wait for a batch or are in one."""
        turns = (turn for turn in self._running if turn is not None)
        in_batches = sum(rows.count for turn in turns for rows in turn.rows)
        return round(sum(fragment.rows.count for fragment in self._fragments) + in_batches)

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
        for node in range(len(self.network.nodes)):
            self._spend(node)
        last_s, last_results, last_latency_s = self._last
        period_s = self._now_s - last_s
        per_s = 1 / period_s if period_s > 0 else 0.0
        sums = self._latencies
        new = sums.count - last_results
        offered = [
            fragment.begun * fragment.batch_s + fragment.arrived * fragment.row_s
            for fragment in self._fragments
        ]
        found = Statistics(
            until_s=self._now_s,
            period_s=period_s,
            input_rates=self._arrived * per_s,
            offered=np.array(offered) * per_s,
            busy=np.array([fragment.busy_s for fragment in self._fragments]) * per_s,
            utilisation=self._node_busy_s * per_s,
            waiting=self.waiting,
            results=new,
            mean_latency_s=(sums.sum_s - last_latency_s) / new if new else math.nan,
        )
        for fragment in self._fragments:
            fragment.begun, fragment.arrived, fragment.busy_s = 0, 0.0, 0.0
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
            operator.name: (round(batched.rows_out), _mean(batched.latency_s, batched.results))
            for operator, batched in zip(self.network.operators, self._fragments, strict=True)
            if not batched.readers
        }

    def rows_kept(self, operator: int) -> float:
        """How many rows a fragment remembers, at most: groups of rows may take less."""
        return self._fragments[operator].kept.count(self._now_s)

    def suspend(self, operators: Sequence[int]) -> float:
        """Stops fragments that are going to move together; gives how long that takes.

        A batch that has begun is finished where it is.
        """
        for number in operators:
            batched = self._fragments[number]
            batched.is_suspended = True
            if batched.shared is None and number in self._queues[batched.node]:
                self._queues[batched.node].remove(number)
                self._under_way.discard(number)
        return self._hand_over.duration_s(
            len(operators), round(sum(self.rows_kept(number) for number in operators))
        )

    def resume(self, operator: int, node: int) -> None:
        """Starts a suspended fragment on a node, with what has come meanwhile."""
        batched = self._fragments[operator]
        batched.node, batched.is_suspended = node, False
        self.moves += 1
        if self._number_of(operator) not in self._under_way:
            self._look(self._number_of(operator))

    def _plan(self, kind: int, number: int, at_s: float) -> None:
        self.events += 1
        heapq.heappush(self._due, (at_s, self.events, kind, number))

    def _on_round(self, number: int) -> None:
        shared, _, here = self._turn(number)
        round_s = self._fragments[number].round_s if shared is None else shared.round_s
        self._plan(_ROUND, number, self._now_s + round_s)
        if number in self._under_way:
            self._missed.add(number)
        elif here:
            self._look(number)

    def _look(self, number: int) -> None:
        """Who has this turn looks for rows, and waits for the node if there are any."""
        _, node, here = self._turn(number)
        self._pull()
        if not any(self._fragments[fragment].rows.count > 0 for fragment in here):
            return
        self._under_way.add(number)
        self._queues[node].append(number)
        if self._running[node] is None:
            self._start(node)

    def _start(self, node: int) -> None:
        """Begins the batch whose turn it is, with all rows that have come by now."""
        number = self._queues[node].popleft()
        shared, _, here = self._turn(number)
        self._pull()
        reading = [fragment for fragment in here if self._fragments[fragment].rows.count > 0]
        taken: list[_Rows] = []
        work_s: list[float] = []
        for fragment in reading:
            batched = self._fragments[fragment]
            rows, batched.rows = batched.rows, _Rows()
            taken.append(rows)
            batched.is_in_batch = True
            batched.begun += 1
            work_s.append(batched.batch_s + rows.count * batched.row_s)
        if shared is not None and taken:
            # Who has lagged has more of the same rows: those are read for all at once.
            opening_s = shared.batch_s + shared.row_s * max(rows.count for rows in taken)
            work_s = [own_s + opening_s / len(reading) for own_s in work_s]
        took_s = sum(work_s) / self.network.nodes[node].cpu
        self._running[node] = _Turn(number, tuple(reading), tuple(taken), tuple(work_s), took_s)
        self._spent_until_s[node] = self._now_s
        self._plan(_DONE, node, self._now_s + took_s)

    def _spend(self, node: int) -> None:
        """Counts the processor time of the batch that a node is at, as far as it has come."""
        turn = self._running[node]
        if turn is None or turn.took_s <= 0:
            return
        spent_s = self._now_s - self._spent_until_s[node]
        self._spent_until_s[node] = self._now_s
        self._node_busy_s[node] += spent_s
        for fragment, work_s in zip(turn.fragments, turn.work_s, strict=True):
            self._fragments[fragment].busy_s += work_s * spent_s / turn.took_s

    def _on_done(self, node: int) -> None:
        self._spend(node)
        turn = self._running[node]
        assert turn is not None
        self._running[node] = None
        for fragment, rows in zip(turn.fragments, turn.rows, strict=True):
            self._fragments[fragment].is_in_batch = False
            self._hand_on(self._fragments[fragment], rows, turn.took_s)
        self._under_way.discard(turn.number)
        if turn.number in self._missed and self._turn(turn.number)[2]:
            self._missed.discard(turn.number)
            self._look(turn.number)
        for fragment in turn.fragments:
            # One that has moved on meanwhile may have had its round there without it.
            elsewhere = self._number_of(fragment)
            if elsewhere != turn.number and elsewhere not in self._under_way:
                self._look(elsewhere)
        if self._running[node] is None and self._queues[node]:
            self._start(node)

    def _hand_on(self, batched: _Batched, rows: _Rows, took_s: float) -> None:
        batched.kept.add(rows.count, self._now_s)
        out = batched.give(rows.count * batched.selectivity, self._now_s)
        for reader in batched.readers:
            self._arrive(self._fragments[reader], out, rows.oldest_s, rows.work_s + took_s)
        if not batched.readers and out > 0:
            batched.rows_out += out
            batched.results += 1
            batched.latency_s += self._now_s - rows.oldest_s
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

    def _arrive(
        self, batched: _Batched, count: float, oldest_s: float, work_s: float = 0.0
    ) -> None:
        batched.rows.add(count, oldest_s, work_s)
        batched.arrived += count


def _fragments(
    network: AbstractNetwork, assignment: Sequence[int] | Ints, work: Mapping[str, BatchWork]
) -> list[_Batched]:
    found = []
    for operator, node in zip(network.operators, assignment, strict=True):
        if operator.name not in work:
            raise InputError(
                f"it is not said how often fragment {operator.name} looks for rows",
                hint=f'Give {{"{operator.name}": BatchWork(round_s=1.0)}}.',
            )
        how = work[operator.name]
        found.append(
            _Batched(
                operator.fixed_cpu * how.round_s,
                operator.cost_s,
                1.0 if operator.selectivity is None else operator.selectivity,
                how.round_s,
                int(node),
                _Rows(),
                _readers(network, operator.name),
                gives_every_s=how.gives_every_s,
                kept=KeptRows(how.keeps_s),
            )
        )
    return found


def _shared(network: AbstractNetwork, fragments: Sequence[_Batched]) -> list[_Shared]:
    """The openings of a network; tells the fragments which one is theirs."""
    numbers = {operator.name: at for at, operator in enumerate(network.operators)}
    found = []
    for at, opening in enumerate(network.openings):
        members = tuple(sorted(numbers[name] for name in opening.operators))
        round_s = min(fragments[number].round_s for number in members)
        found.append(_Shared(opening.fixed_cpu * round_s, opening.cost_s, round_s, members))
        for number in members:
            fragments[number].shared = at
    return found


def _readers(network: AbstractNetwork, stream: str) -> tuple[int, ...]:
    """The numbers of the operators that read a stream."""
    readers = {reader.name for reader in network.readers[stream]}
    return tuple(at for at, operator in enumerate(network.operators) if operator.name in readers)


def _mean(total: float, count: int) -> float:
    return total / count if count else math.nan
