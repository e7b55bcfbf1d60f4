"""The simulator's model written with SimPy, the way its users would: a process per node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import UnreachableError
from penstock.model.abstract import AbstractNetwork, AbstractOperator


@dataclass
class PeerResult:
    """What both sides count."""

    results: int = 0
    latency_s: float = 0.0
    processed: int = 0
    busy_s: dict[str, float] = field(default_factory=dict)


def simpy_run(
    network: AbstractNetwork,
    times_s: Mapping[str, Sequence[float]],
    assignment: Sequence[int],
    until_s: float,
) -> PeerResult:
    """Tuples arrive at the given times; selectivity is exact on average, service first come."""
    try:
        import simpy
    except ImportError:
        raise UnreachableError(
            "SimPy is not installed", hint="It comes with the development packages: make setup."
        ) from None
    env = simpy.Environment()
    found = PeerResult(busy_s={node.name: 0.0 for node in network.nodes})
    queues = [simpy.Store(env) for _ in network.nodes]
    where = {
        operator.name: queues[node]
        for operator, node in zip(network.operators, assignment, strict=True)
    }
    readers = {
        name: [(where[operator.name], operator) for operator in ones]
        for name, ones in network.readers.items()
    }
    credit = {operator.name: 0.0 for operator in network.operators}

    def node(name: str, speed: float, queue: Any) -> Any:
        while True:
            operator, born = yield queue.get()
            took_s = operator.cost_s / speed
            yield env.timeout(took_s)
            found.busy_s[name] += took_s
            found.processed += 1
            for _ in range(passed(operator)):
                send(operator.name, born)

    def passed(operator: AbstractOperator) -> int:
        total = credit[operator.name] + (operator.selectivity or 0.0)
        whole = math.floor(total + 1e-9)
        credit[operator.name] = total - whole
        return whole

    def send(name: str, born: float) -> None:
        if not readers[name]:
            found.results += 1
            found.latency_s += env.now - born
        for queue, operator in readers[name]:
            queue.put((operator, born))

    def source(name: str) -> Any:
        now = 0.0
        for time in times_s[name]:
            yield env.timeout(time - now)
            now = time
            send(name, time)

    for spec, queue in zip(network.nodes, queues, strict=True):
        env.process(node(spec.name, spec.cpu, queue))
    for name in times_s:
        env.process(source(name))
    env.run(until=until_s)
    return found
