"""How many requests can be composed in a second, at once and by messages.

Times are processor time: one thread works, and neighbours on the machine do not count. 500 nodes
offer 1,000 components of 200 operators; plans have 2 to 10 operators, and requests end again, so
that what runs stays about the same.
"""

from __future__ import annotations

import time
import tracemalloc
from collections import deque
from collections.abc import Callable
from random import Random

import numpy as np

from penstock.bench.live_decision import decisions_ms
from penstock.bench.report import BenchCase, Report, limited
from penstock.model.composition import PlanOperator, QueryPlan
from penstock.share.at_once import AtOnce
from penstock.share.discovery import HashRing, stream_key
from penstock.share.messages import Compose, Finish
from penstock.share.node_book import NodeBook
from penstock.share.protocol import CompositionProtocol
from penstock.sim.overlay import Overlay

Say = Callable[[str], None]
NODES, OPERATORS, REPLICAS = 500, 200, 5
_GOAL_PER_S = 5_000
_MOST_MS = 50


def admission(quick: bool, say: Say) -> Report:
    """Requests a second in one transaction and by messages, one decision, memory of a stream."""
    requests = 3_000 if quick else 20_000
    return Report(
        "admission",
        (
            _at_once(requests, say),
            _one_decision(say),
            _live_decision(200 if quick else 1_000, say),
            _by_messages(requests // 20, say),
            _memory(say),
        ),
    )


def offered(rng: Random) -> dict[str, tuple[int, ...]]:
    """Which nodes have components of each operator."""
    return {f"k{at}": tuple(rng.sample(range(NODES), REPLICAS)) for at in range(OPERATORS)}


def draw_plan(rng: Random, shortest: int = 2, longest: int = 10) -> QueryPlan:
    """A chain of random operators with a limit of twice what it takes alone."""
    kinds = [rng.randrange(OPERATORS) for _ in range(rng.randint(shortest, longest))]
    operators = tuple(
        PlanOperator(f"o{at}", (f"o{at - 1}",) if at else (), 0.02, 0.01, 0.01, does=f"k{kind}")
        for at, kind in enumerate(kinds)
    )
    return QueryPlan(operators, 2 * len(kinds) * (0.01 + 0.02))


def _system(seed: int) -> AtOnce:
    delays_s = np.random.default_rng(seed).random((NODES, NODES)) * 0.04
    return AtOnce(delays_s, offered(Random(seed)), seed=seed)


def _at_once(requests: int, say: Say) -> BenchCase:
    say("requests composed at once")
    rng = Random(1)
    system = _system(1)
    plans = [draw_plan(rng) for _ in range(1_000)]
    running: deque[str] = deque()
    _compose(system, plans, running, rng, 1_000, "w")
    before_s = time.process_time()
    _compose(system, plans, running, rng, requests, "r")
    per_s = requests / (time.process_time() - before_s)
    return BenchCase(
        "requests composed at once, 500 nodes", per_s, "per CPU second",
        goal=f">= {_GOAL_PER_S:g}", ok=per_s >= _GOAL_PER_S,
    )  # fmt: skip


def _compose(
    system: AtOnce, plans: list[QueryPlan], running: deque[str], rng: Random, count: int, mark: str
) -> None:
    for at in range(count):
        request = f"{mark}{at}"
        if system.compose(request, rng.choice(plans)) is not None:
            running.append(request)
        if len(running) > 1_000:
            system.finish(running.popleft())


def _one_decision(say: Say) -> BenchCase:
    say("one decision against 1,000 running queries")
    rng = Random(2)
    system = _system(2)
    running: deque[str] = deque()
    _compose(system, [draw_plan(rng) for _ in range(1_000)], running, rng, 3_000, "w")
    times_ms = []
    for at in range(100):
        plan = draw_plan(rng, 10, 10)
        before_s = time.process_time()
        admitted = system.compose(f"q{at}", plan)
        times_ms.append(1e3 * (time.process_time() - before_s))
        if admitted is not None:
            system.finish(f"q{at}")
    what = f"a query of 10 operators against {len(running):,} running, slowest of 100"
    return limited(what, max(times_ms), "ms", at_most=_MOST_MS)


def _live_decision(queries: int, say: Say) -> BenchCase:
    """The same by a controller: from the text to the answer, with the catalog on disk."""
    say(f"live decisions against {queries:,} running queries")
    slowest_ms = decisions_ms(queries, decisions=50)[-1]
    what = f"live, a query of 10 operators against {queries:,} running, slowest of 50"
    return limited(what, slowest_ms, "ms", at_most=_MOST_MS)


def _by_messages(requests: int, say: Say) -> BenchCase:
    """The whole protocol: discovery, probes, reservations, confirmation."""
    say("requests composed by messages")
    rng = Random(3)
    where = offered(rng)
    names = [f"v{at}" for at in range(NODES)]
    books = [
        NodeBook(name, permanent=frozenset(kind for kind, nodes in where.items() if at in nodes))
        for at, name in enumerate(names)
    ]
    overlay = Overlay(books, CompositionProtocol(), lambda one, other: 0.02, seed=3)
    for at in range(requests):
        node, at_s = rng.choice(names), at / 200
        overlay.submit(at_s, node, Compose(f"r{at}", draw_plan(rng)))
        overlay.submit(at_s + 5, node, Finish(f"r{at}"))
    before_s = time.process_time()
    overlay.run()
    per_s = requests / (time.process_time() - before_s)
    return BenchCase("requests composed by messages, 500 nodes", per_s, "per CPU second")


def _memory(say: Say) -> BenchCase:
    say("memory of a registered stream")
    streams = 10_000
    ring = HashRing([f"v{at}" for at in range(NODES)])
    names = [stream_key(f"k{at}(k{at + 1}())") for at in range(streams)]
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for at, name in enumerate(names):
        ring.register(name, f"v{at % NODES}")
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return BenchCase("memory of a registered stream", (after - before) / streams, "bytes")
