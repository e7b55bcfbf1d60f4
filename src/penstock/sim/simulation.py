"""A simulated system that is driven from outside: let time pass, look, move operators."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError, RunError, listed
from penstock.load.arrays import Floats, Ints
from penstock.model.abstract import AbstractNetwork
from penstock.sim import block as at
from penstock.sim.arrivals import Arrivals, Recorded
from penstock.sim.block import column
from penstock.sim.building import PIECE, built, layout_of, places, with_room
from penstock.sim.clock import ARRIVAL, NEVER, PRIORITY_BITS, ranked, set_slot
from penstock.sim.core import DONE, FULL, LOG_FULL, REFILL, plan_arrival, run
from penstock.sim.latency import Latencies
from penstock.sim.moving import resume, suspend
from penstock.sim.physics import Physics
from penstock.sim.rounds import with_rounds

_LOG_ROOM = 65_536


@dataclass(frozen=True, eq=False)
class Statistics:
    """What was measured in one period: rates per second, loads as shares of a unit of capacity.

    ``offered`` is the load the arrived tuples ask for at an operator, ``busy`` what it really
    used; they differ when a node is overloaded or an operator stands still. ``utilisation`` is
    the share of time a node was busy.
    """

    until_s: float
    period_s: float
    input_rates: Floats
    offered: Floats
    busy: Floats
    utilisation: Floats
    waiting: int
    results: int
    mean_latency_s: float


class Simulation:
    """A network on nodes, in simulated time.

    ``arrivals`` says how tuples arrive at each input, ``assignment`` where each operator starts
    (by number, in the order of the network). The same seed gives the same events, and sources and
    selectivities do not depend on the assignment. Fixed loads keep the nodes busy in rounds, and
    count with their operators in all statistics.

    >>> from penstock.model.abstract import AbstractInput, AbstractNode, AbstractOperator
    >>> from penstock.sim.arrivals import Steady
    >>> network = AbstractNetwork(
    ...     (AbstractInput("I"),), (AbstractOperator("o", ("I",), cost_s=0.01),),
    ...     (AbstractNode("n"),))
    >>> simulation = Simulation(network, {"I": Steady(10, periodic=True)}, [0], seed=1)
    >>> simulation.advance(100.05)
    >>> simulation.statistics().utilisation.round(3), round(simulation.latencies().mean_s, 6)
    (array([0.1]), 0.01)
    """

    def __init__(
        self,
        network: AbstractNetwork,
        arrivals: Mapping[str, Arrivals],
        assignment: Sequence[int] | Ints,
        seed: int,
        physics: Physics | None = None,
        log: Callable[[bytes], object] | None = None,
        most_waiting: int = 50_000_000,
    ) -> None:
        self.network = network
        self.physics = physics or Physics()
        self.moves = 0
        self._log = log
        self._most = most_waiting
        self._rounds = with_rounds(network, self.physics.round_s)
        laid_out = self._rounds.network
        given = [*_in_order(network, arrivals), *self._rounds.arrivals.values()]
        recorded = sum(isinstance(pattern, Recorded) for pattern in given)
        self._layout = layout_of(laid_out, recorded, _LOG_ROOM if log else 0)
        where = _checked(network, assignment)
        where = np.concatenate((where, where[self._rounds.owners]))
        self._block = built(laid_out, given, where, self.physics, seed, self._layout)
        self._last_s = 0.0
        self._last_results = (0.0, 0.0)
        self._pieces: dict[int, Iterator[Floats]] = {}
        for number, pattern in enumerate(given):
            source = self._layout.sources + number * at.SOURCE_WORDS
            if isinstance(pattern, Recorded):
                self._pieces[source] = pattern.times()
            self._start(source)
        for number, first_s in enumerate(self._rounds.first_s.tolist()):
            slot = 2 * len(network.nodes) + len(network.inputs) + number
            set_slot(self._block, slot, first_s, ranked(self._block, ARRIVAL))

    @property
    def now_s(self) -> float:
        return float(self._block.real[at.NOW])

    @property
    def events(self) -> int:
        return int(self._block.whole[at.EVENTS])

    @property
    def assignment(self) -> Ints:
        """The number of every operator's node; of one that is moving, the old one."""
        found: Ints = (self._operators(at.NODE) - self._layout.nodes) // at.NODE_WORDS
        return found

    @property
    def waiting(self) -> int:
        """Tuples in the system."""
        return places(self._block, self._layout) - int(self._block.whole[at.FREE_COUNT])

    @property
    def memory_bytes(self) -> int:
        return int(self._block.whole.nbytes)

    def advance(self, until_s: float) -> None:
        """Lets time pass up to and including ``until_s``."""
        why = FULL
        while why != DONE:
            why, source = run(self._block, float(until_s))
            if why == FULL:
                self._enlarge()
            elif why == REFILL:
                self._start(source)
            elif why == LOG_FULL:
                self._write_log()
        self._write_log()

    def drain(self, until_s: float = NEVER) -> None:
        """Ends all arrivals and lets everything under way be processed."""
        for number in range(len(self._rounds.network.inputs)):
            set_slot(self._block, 2 * len(self.network.nodes) + number, NEVER, 0)
        self.advance(until_s)

    def scale(self, factor: float | Floats) -> None:
        """Multiplies the rates of all sources, or of each, relative to how they were described."""
        self._sources(at.FACTOR, self._block.real)[:] = factor

    def statistics(self) -> Statistics:
        """What was measured since the last call."""
        period_s = self.now_s - self._last_s
        per_s = 1 / period_s if period_s > 0 else 0.0
        real = self._block.real
        new = real[at.RESULTS] - self._last_results[0]
        latency_s = real[at.LATENCY_S] - self._last_results[1]
        found = Statistics(
            until_s=self.now_s,
            period_s=period_s,
            input_rates=self._sources(at.ARRIVED, self._block.whole) * per_s,
            offered=self._with_rounds(self._offered_s()) * per_s,
            busy=self._with_rounds(self._all_operators(at.BUSY_S, real)) * per_s,
            utilisation=self._nodes(at.NODE_BUSY_S, real) * per_s,
            waiting=self.waiting,
            results=int(new),
            mean_latency_s=float(latency_s / new) if new else float("nan"),
        )
        self._reset()
        return found

    def latencies(self) -> Latencies:
        """The latencies of results since the last :meth:`forget`."""
        real, bins = self._block.real, self._layout.bins
        return Latencies(
            int(real[at.RESULTS]),
            float(real[at.LATENCY_S]),
            float(real[at.LATENCY_SQUARED]),
            float(real[at.WORK_S]),
            float(real[at.LONGEST_S]),
            self._block.whole[bins : bins + at.BIN_COUNT].copy(),
        )

    def sink_latencies(self) -> dict[str, tuple[int, float]]:
        """For every operator whose output nobody reads: results, and their mean latency."""
        counts = self._operators(at.SINK_RESULTS, self._block.real).tolist()
        sums = self._operators(at.SINK_LATENCY_S, self._block.real).tolist()
        return {
            operator.name: (int(count), total / count if count else float("nan"))
            for operator, count, total in zip(self.network.operators, counts, sums, strict=True)
            if not self.network.readers[operator.name]
        }

    def forget(self) -> None:
        """Latencies count from now on, of tuples that arrive from now on."""
        real, bins = self._block.real, self._layout.bins
        self._block.whole[bins : bins + at.BIN_COUNT] = 0
        for word in (at.RESULTS, at.LATENCY_S, at.LATENCY_SQUARED, at.WORK_S, at.LONGEST_S):
            real[word] = 0
        for word in (at.SINK_RESULTS, at.SINK_LATENCY_S):
            self._operators(word, real)[:] = 0
        self._last_results = (0.0, 0.0)
        real[at.BORN_AFTER_S] = self.now_s

    def suspend(self, operators: Sequence[int]) -> float:
        """Stops operators that are going to move together; gives how long that takes."""
        state = sum(
            suspend(self._block, record) for operator in operators for record in self._of(operator)
        )
        return self.physics.hand_over.duration_s(len(operators), state)

    def resume(self, operator: int, node: int) -> None:
        """Starts a suspended operator on a node."""
        for record in self._of(operator):
            held = int(self._block.whole[record + at.HELD + at.LENGTH])
            while self._block.whole[at.FREE_COUNT] < held + 8:  # a join may keep each it begins
                self._enlarge()
            resume(self._block, record, self._layout.nodes + node * at.NODE_WORDS)
        self.moves += 1

    def _of(self, operator: int) -> list[int]:
        """The records of an operator: its own, and that of its rounds if it has any."""
        rounds = len(self.network.operators) + np.flatnonzero(self._rounds.owners == operator)
        return [self._operator(record) for record in (operator, *rounds.tolist())]

    def _with_rounds(self, by_operator: Floats) -> Floats:
        """What was measured of every operator, its rounds included."""
        count = len(self.network.operators)
        found = by_operator[:count].copy()
        found[self._rounds.owners] += by_operator[count:]
        return found

    def _offered_s(self) -> Floats:
        """Processor seconds asked for: tuples by what one costs, joins by what they used."""
        is_join = self._all_operators(at.KIND) == at.JOIN
        asked = self._all_operators(at.TAKEN) * self._all_operators(at.COST_S, self._block.real)
        return np.where(is_join, self._all_operators(at.BUSY_S, self._block.real), asked)

    def _reset(self) -> None:
        self._sources(at.ARRIVED, self._block.whole)[:] = 0
        self._nodes(at.NODE_BUSY_S, self._block.real)[:] = 0
        for word in (at.TAKEN, at.SENT, at.BUSY_S):
            self._all_operators(word)[:] = 0
        self._last_s = self.now_s
        self._last_results = (
            float(self._block.real[at.RESULTS]),
            float(self._block.real[at.LATENCY_S]),
        )

    def _operator(self, number: int) -> int:
        return self._layout.operators + number * at.OPERATOR_WORDS

    def _operators(self, field: int, words: np.ndarray | None = None) -> np.ndarray:
        return self._all_operators(field, words)[: len(self.network.operators)]

    def _all_operators(self, field: int, words: np.ndarray | None = None) -> np.ndarray:
        """A field of every operator, then of every operator's rounds."""
        seen = self._block.whole if words is None else words
        count = len(self._rounds.network.operators)
        return column(seen, self._layout.operators, at.OPERATOR_WORDS, count, field)

    def _nodes(self, field: int, words: np.ndarray) -> np.ndarray:
        return column(words, self._layout.nodes, at.NODE_WORDS, len(self.network.nodes), field)

    def _sources(self, field: int, words: np.ndarray) -> np.ndarray:
        return column(words, self._layout.sources, at.SOURCE_WORDS, len(self.network.inputs), field)

    def _enlarge(self) -> None:
        room = places(self._block, self._layout)
        if room >= self._most:
            lengths = self._nodes(at.QUEUE + at.LENGTH, self._block.whole)
            longest = self.network.nodes[int(np.argmax(lengths))].name
            raise RunError(
                f"{self.waiting:,} tuples are waiting at {self.now_s:.1f} s, most of them for "
                f"node {longest}",
                hint="The nodes cannot keep up: lower the rates or add nodes.",
            )
        self._block = with_room(self._block, room)

    def _start(self, source: int) -> None:
        """Schedules a source's next arrival, with more recorded times if it needs them."""
        while not plan_arrival(self._block, source):
            piece = next(self._pieces[source], None)
            if piece is None:
                return
            self._fill(source, piece)

    def _fill(self, source: int, piece: Floats) -> None:
        if piece.size > PIECE:
            parts = np.array_split(piece, -(-piece.size // PIECE))
            self._pieces[source] = _chained(parts[1:], self._pieces[source])
            piece = parts[0]
        buffer = self._block.whole[source + at.BUFFER]
        self._block.real[buffer : buffer + piece.size] = piece
        self._block.whole[source + at.POSITION] = 0
        self._block.whole[source + at.FILLED] = piece.size

    def _write_log(self) -> None:
        size = int(self._block.whole[at.LOG_SIZE])
        if self._log and size:
            first = self._layout.log
            self._log(self._block.whole[first : first + size * at.LOG_WORDS].tobytes())
            self._block.whole[at.LOG_SIZE] = 0


def logged_events(log: bytes) -> Iterator[tuple[float, int, int]]:
    """The events of a log: time, kind (completion, delivery, arrival) and whose it was."""
    for time, what in struct.iter_unpack("=dq", log):
        yield time, what >> PRIORITY_BITS, what & ((1 << PRIORITY_BITS) - 1)


def _chained(parts: Sequence[Floats], rest: Iterator[Floats]) -> Iterator[Floats]:
    yield from parts
    yield from rest


def _in_order(network: AbstractNetwork, arrivals: Mapping[str, Arrivals]) -> list[Arrivals]:
    names = [stream.name for stream in network.inputs]
    missing = [name for name in names if name not in arrivals]
    if missing or len(arrivals) > len(names):
        raise InputError(
            f"arrivals are given for {listed(arrivals)}; the inputs are {listed(names)}",
            hint="Say for each how its tuples arrive.",
        )
    return [arrivals[name] for name in names]


def _checked(network: AbstractNetwork, assignment: Sequence[int] | Ints) -> Ints:
    where = np.array(assignment, dtype=np.int64)
    count, nodes = len(network.operators), len(network.nodes)
    if where.shape != (count,) or np.any((where < 0) | (where >= nodes)):
        raise InputError(
            f"an assignment of {where.size} operators to nodes {sorted(set(where.tolist()))}",
            hint=f"Give a node from 0 to {nodes - 1} for each of the {count} operators.",
        )
    return where
