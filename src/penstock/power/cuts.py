"""What every cut of every query costs: bytes on the air, joules of processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.load.arrays import Floats, Ints, frozen
from penstock.model.devices import WEIGHTED, Broadcast
from penstock.power.problem import ChainQuery, PowerProblem


@dataclass(frozen=True, eq=False)
class CutTable:
    """The allowed cuts of all queries side by side, those of a query from its source to its root.

    The entries of query k are ``starts[k]`` to ``starts[k + 1]``; the first is the cut
    ``first[k]``. ``sizes`` are bytes in one cycle with the descriptor, none for an empty result;
    ``processing_j`` is what the shipped operators cost all listeners together; ``weights`` are the
    watts of all listeners' receivers and ``clients`` their number. A *plan* is one entry a query.
    """

    broadcast: Broadcast
    names: tuple[str, ...]
    starts: Ints
    first: Ints
    sizes: Floats
    processing_j: Floats
    weights: Floats
    clients: Ints

    def __post_init__(self) -> None:
        arrays = (self.starts, self.first, self.sizes, self.processing_j, self.weights)
        for array in (*arrays, self.clients):
            frozen(array)

    @property
    def roots(self) -> Ints:
        """The entry of every query that leaves all operators on the server."""
        return self.starts[1:] - 1

    @property
    def owners(self) -> Ints:
        """The query of every entry."""
        return np.repeat(np.arange(len(self.names)), np.diff(self.starts))

    @property
    def keys(self) -> Floats:
        """By which entries are ordered on the air, the least first."""
        if self.broadcast.organisation != WEIGHTED:
            return self.sizes
        weights = self.weights[self.owners]
        # Nobody pays for listening to a result without weight: it may as well be the last.
        last = np.full(len(self.sizes), np.inf)
        np.divide(self.sizes, weights, out=last, where=weights > 0)
        return last

    @property
    def seconds_per_byte(self) -> float:
        return 1.0 / self.broadcast.bandwidth_per_s

    def cut_numbers(self, entries: Ints) -> Ints:
        """How many operators of each query a plan leaves on the server."""
        return entries - self.starts[:-1] + self.first


def cut_table(problem: PowerProblem) -> CutTable:
    """The table of a problem; raises where sizes or costs are beyond what numbers can hold.

    >>> from penstock.model.devices import DeviceProfile
    >>> from penstock.power.problem import ChainOperator, ChainSource
    >>> query = ChainQuery("q1", "s1", ("d1",), (ChainOperator(100.0, 0.5, 0.1),))
    >>> table = cut_table(PowerProblem(
    ...     Broadcast("sorted", 1_000.0), (ChainSource("s1", 10.0, 20.0),),
    ...     (DeviceProfile("d1", 1e3, 0.5, 1.0),), (query,)))
    >>> table.sizes.tolist(), table.processing_j.tolist()
    ([200.0, 10.0], [0.5, 0.0])
    """
    rows = [_row(problem, query) for query in problem.queries]
    cuts = [problem.cuts_of(query) for query in problem.queries]
    listeners = [problem.listeners(query) for query in problem.queries]
    return CutTable(
        problem.broadcast,
        tuple(query.name for query in problem.queries),
        np.concatenate(([0], np.cumsum([len(allowed) for allowed in cuts]))).astype(np.int64),
        np.array([allowed.start for allowed in cuts], dtype=np.int64),
        np.concatenate([sizes for sizes, _ in rows]),
        np.concatenate([processing for _, processing in rows]),
        np.array([sum(device.receiving_w for device in heard) for heard in listeners]),
        np.array([len(heard) for heard in listeners], dtype=np.int64),
    )


@dataclass(frozen=True, eq=False)
class ChainFlow:
    """What passes along a chain in one cycle: behind every cut tuples, bytes, cycles to be shipped.

    ``cycles[x]`` is what all operators behind cut x need together.
    """

    tuples: Floats
    data_bytes: Floats
    cycles: Floats


def flow_of(problem: PowerProblem, query: ChainQuery) -> ChainFlow:
    """The flow of one chain, by the number of operators that stay on the server."""
    source = problem.source_by_name[query.source]
    operators = query.operators
    with np.errstate(over="ignore", invalid="ignore"):
        tuples = _running_product(
            source.rate_per_s * problem.broadcast.cycle_s,
            [operator.selectivity for operator in operators],
        )
        sizes = _running_product(
            source.tuple_bytes, [operator.projectivity for operator in operators]
        )
        work = np.array([operator.cycles for operator in operators]) * tuples[:-1]
        cycles = np.concatenate((np.cumsum(work[::-1])[::-1], [0.0]))
        data = tuples * sizes
    if not (np.isfinite(data).all() and np.isfinite(cycles).all()):
        wrong = np.flatnonzero(~np.isfinite(tuples) | ~np.isfinite(data))
        at = int(wrong[0]) - 1 if len(wrong) and wrong[0] else 0
        what = query.operator_label(at) if operators else f"query {query.name}"
        raise InputError(
            f"{what} has more tuples, bytes or cycles than can be counted",
            hint="Lower its cycles, selectivity or projectivity.",
        )
    return ChainFlow(tuples, data, cycles)


def _running_product(first: float, factors: list[float]) -> Floats:
    products: Floats = np.multiply.accumulate(np.array([first, *factors], dtype=np.float64))
    return products


def _row(problem: PowerProblem, query: ChainQuery) -> tuple[Floats, Floats]:
    """Sizes and processing energies of the allowed cuts of one query."""
    flow, cuts = flow_of(problem, query), problem.cuts_of(query)
    data = flow.data_bytes[cuts.start : cuts.stop]
    sizes = np.where(data > 0, data + problem.broadcast.descriptor_bytes, 0.0)
    per_cycle_j = sum(
        device.processing_w / device.speed_per_s for device in problem.listeners(query)
    )
    return sizes, flow.cycles[cuts.start : cuts.stop] * per_cycle_j
