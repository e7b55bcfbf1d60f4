"""Cuts as their source writes them down: plain loops, everything summed up again at every look."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.devices import INDEXED, WEIGHTED
from penstock.power.problem import PowerProblem

Cuts = list[int]
ROUNDING = 1e-12


def bytes_on_air(problem: PowerProblem, query: int, cut: int) -> float:
    """The size of a query's result in one cycle, with its descriptor; an empty one has none."""
    chain = problem.queries[query]
    source = problem.source_by_name[chain.source]
    tuples, size = source.rate_per_s * problem.broadcast.cycle_s, source.tuple_bytes
    for operator in chain.operators[:cut]:
        tuples *= operator.selectivity
        size *= operator.projectivity
    return tuples * size + problem.broadcast.descriptor_bytes if tuples * size > 0 else 0.0


def processing_j(problem: PowerProblem, query: int, cut: int) -> float:
    """What the shipped operators of a query cost its listeners."""
    chain = problem.queries[query]
    tuples = problem.source_by_name[chain.source].rate_per_s * problem.broadcast.cycle_s
    total = 0.0
    for at, operator in enumerate(chain.operators):
        if at >= cut:
            for device in problem.listeners(chain):
                total += operator.cycles * tuples / device.speed_per_s * device.processing_w
        tuples *= operator.selectivity
    return total


def receiving_w(problem: PowerProblem, query: int) -> float:
    """The watts of all receivers that listen to a query."""
    return sum(device.receiving_w for device in problem.listeners(problem.queries[query]))


class PlainCuts:
    """A problem with its sizes and costs looked up, and every energy summed up afresh."""

    def __init__(self, problem: PowerProblem) -> None:
        self.broadcast = problem.broadcast
        self.allowed = [problem.cuts_of(query) for query in problem.queries]
        numbers = range(len(problem.queries))
        self.sizes = [
            {cut: bytes_on_air(problem, query, cut) for cut in self.allowed[query]}
            for query in numbers
        ]
        self.processing = [
            {cut: processing_j(problem, query, cut) for cut in self.allowed[query]}
            for query in numbers
        ]
        self.watts = [receiving_w(problem, query) for query in numbers]
        self.clients = [len(query.devices) for query in problem.queries]

    def order(self, cuts: Cuts) -> list[int]:
        """The queries as they are on the air."""
        if self.broadcast.organisation == WEIGHTED:
            return sorted(
                range(len(cuts)),
                key=lambda query: (
                    self.sizes[query][cuts[query]] / self.watts[query]
                    if self.watts[query]
                    else float("inf")
                ),
            )
        return sorted(range(len(cuts)), key=lambda query: self.sizes[query][cuts[query]])

    def tuning(self, cuts: Cuts) -> float:
        """Joules of all receivers."""
        channel, total, heard, ups = self.broadcast, 0.0, 0.0, 1
        if channel.organisation == INDEXED:
            results = sum(self.sizes[query][cut] > 0 for query, cut in enumerate(cuts))
            index, ups = results * channel.index_entry_bytes, 2
        for query in self.order(cuts):
            own = self.sizes[query][cuts[query]]
            heard = own + index if channel.organisation == INDEXED else heard + own
            total += heard / channel.bandwidth_per_s * self.watts[query]
        return total + sum(self.clients) * ups * channel.power_up_j

    def energy(self, cuts: Cuts) -> float:
        """Joules of all devices."""
        return self.tuning(cuts) + sum(
            self.processing[query][cut] for query, cut in enumerate(cuts)
        )

    def least(self, value: Iterable[dict[int, float]]) -> Cuts:
        """For every query the cut of least value; of equal ones that nearest the root."""
        found = []
        for values in value:
            limit = min(values.values())
            limit += abs(limit) * ROUNDING
            found.append(max(cut for cut, given in values.items() if given <= limit))
        return found

    def min_data_cut(self) -> Cuts:
        return self.least(self.sizes)

    def min_power_cut(self) -> Cuts:
        return self.least(
            {
                cut: size / self.broadcast.bandwidth_per_s * self.watts[query]
                + self.processing[query][cut]
                for cut, size in sizes.items()
            }
            for query, sizes in enumerate(self.sizes)
        )

    def bose(self) -> Cuts:
        """Section 3.4: the best reinstatement of all, until none lowers the energy."""
        cuts = self.min_data_cut()
        same = ROUNDING * self.energy(cuts)
        while step := self._reinstatement(cuts, same):
            query, cut = step
            cuts[query] = cut
        return cuts

    def _reinstatement(self, cuts: Cuts, same: float) -> tuple[int, int] | None:
        now = self.energy(cuts)
        changes = {
            (query, cut): self.energy([*cuts[:query], cut, *cuts[query + 1 :]]) - now
            for query, allowed in enumerate(self.allowed)
            for cut in allowed
            if cut > cuts[query]
        }
        best = min(changes.values(), default=0.0)
        if best < -same:
            return next(step for step, change in changes.items() if change <= best + same)
        equal = [(query, -cut) for (query, cut), change in changes.items() if change <= same]
        return (min(equal)[0], -min(equal)[1]) if equal else None
