"""Planning: ROD against a NumPy pass and against the plain loops, its growth, volumes, search.

Every time is the best of several: planning is short, and what disturbs it only adds.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from penstock.bench.plain_rod import plain_rod
from penstock.bench.report import BenchCase, Report, compared, limited
from penstock.load.arrays import Ints
from penstock.load.feasible import weights
from penstock.load.linear import Arcs
from penstock.load.problem import Problem
from penstock.load.volume import directions, estimated_volume
from penstock.place.local_search import LocalSearch
from penstock.place.rod import rod

INPUTS = 5
LARGE = (50_000, 1_000)
SMALL = (2_000, 100)
LADDER = ((2_000, 100), (10_000, 200), (50_000, 1_000), (100_000, 2_000), (200_000, 5_000))
_GIB = 1 << 30
_VOLUME_ERROR = 0.01


def placement(quick: bool, say: Callable[[str], None]) -> Report:
    """How fast planning is, and how it grows."""
    return Report("placement", tuple(_cases(quick, say)))


def _cases(quick: bool, say: Callable[[str], None]) -> Iterator[BenchCase]:
    rod(chains(100, 10))
    say("a large network")
    yield from _large()
    say("plain loops")
    small = chains(*SMALL)
    fast, plain = best_s(lambda: rod(small), 5), best_s(lambda: plain_rod(small), 1)
    yield compared("plain loops, 2,000 x 100", plain, "s", fast, at_least=50)
    yield from _ladder(LADDER[:4] if quick else LADDER, say)
    say("volumes")
    yield from _volume()
    say("local search")
    yield from _search()


def _large() -> Iterator[BenchCase]:
    problem = chains(*LARGE)
    name = f"ROD, {LARGE[0]:,} x {LARGE[1]:,} x {INPUTS}"
    yield compared(
        name,
        best_s(lambda: rod(problem), 3),
        "s",
        best_s(lambda: numpy_pass(problem), 3),
        at_most=4,
    )
    yield limited(f"{name}: memory of the process", _peak_gib(), "GiB", at_most=1)


def numpy_pass(problem: Problem) -> float:
    """Adds every unit's row to those of all nodes once: m x n x d numbers."""
    loads = np.zeros((len(problem.nodes), problem.size[2]))
    out = np.empty_like(loads)
    for row in problem.rows:
        np.add(loads, row, out=out)
    return float(out[0, 0])


def _peak_gib() -> float:
    """The most memory that a process takes that does nothing but plan the large network."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_planned_peak).result()


def _planned_peak() -> float:
    rod(chains(*LARGE))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / _GIB


def _ladder(steps: tuple[tuple[int, int], ...], say: Callable[[str], None]) -> Iterator[BenchCase]:
    """Time per unit, node and variable: the same at every size if growth is what it should be."""
    first = 0.0
    for units, nodes in steps:
        say(f"{units:,} units on {nodes:,} nodes")
        problem = chains(units, nodes)
        taken = best_s(partial(rod, problem), 3 if units * nodes < 1e8 else 1)
        each = 1e9 * taken / (units * nodes * INPUTS)
        first = first or each
        name = f"ROD, {units:,} x {nodes:,}: {taken:.3g} s, per number"
        yield compared(name, each, "ns", first, at_most=3)


def _volume() -> Iterator[BenchCase]:
    """A plan of 100 nodes and 5 inputs, to 1 % of its volume."""
    problem = chains(500, 100)
    rows = weights(problem, rod(problem))
    log2_points = 6
    while True:
        found = estimated_volume(rows, directions(INPUTS, log2_points))
        if found.error <= _VOLUME_ERROR * found.ratio:
            break
        log2_points += 1

    def whole() -> None:
        directions.cache_clear()
        estimated_volume(rows, directions(INPUTS, log2_points))

    name = "volume, 100 nodes, 5 inputs"
    yield limited(f"{name}: relative error", found.error / found.ratio, "", at_most=_VOLUME_ERROR)
    yield limited(f"{name}: with its points", 1e3 * best_s(whole, 5), "ms", at_most=100)
    again = best_s(lambda: estimated_volume(rows, directions(INPUTS, log2_points)), 5)
    yield limited(f"{name}: the next plan", 1e3 * again, "ms", at_most=100)


def _search() -> Iterator[BenchCase]:
    problem = chains(100, 10)
    rng = np.random.default_rng(0)
    plan: Ints = LocalSearch().place(problem, rng)
    ours = estimated_volume(weights(problem, plan)).ratio
    before = estimated_volume(weights(problem, rod(problem))).ratio
    yield compared("local search, 100 x 10: volume over ROD's", ours, "", before, at_least=1)
    yield limited(
        "local search, 100 x 10", best_s(lambda: LocalSearch().place(problem, rng), 2), "s"
    )


def best_s(work: Callable[[], object], times: int) -> float:
    """Seconds of the quickest of several goes."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def chains(units: int, nodes: int) -> Problem:
    """Chains of operators of random cost behind five inputs, on equal nodes."""
    rng = np.random.default_rng(units)
    rows = np.zeros((units, INPUTS))
    rows[np.arange(units), np.arange(units) % INPUTS] = rng.uniform(0.1, 1.0, units)
    sources = np.arange(units - INPUTS)
    nothing = np.zeros((len(sources), INPUTS))
    return Problem(
        units=tuple(f"o{at}" for at in range(units)),
        members=tuple((f"o{at}",) for at in range(units)),
        rows=rows,
        fixed=np.zeros(units),
        arcs=Arcs(sources, sources + INPUTS, nothing, nothing),
        variables=tuple(f"I{at}" for at in range(INPUTS)),
        nodes=tuple(f"n{at}" for at in range(nodes)),
        capacities=np.ones(nodes),
        lower=np.zeros(INPUTS),
        rates=np.ones(INPUTS),
        peaks=np.ones(INPUTS),
        bandwidths=np.full(nodes, np.inf),
        total_bandwidth=np.inf,
        sticky=np.zeros(units, dtype=np.bool_),
        pinned=np.full(units, -1, dtype=np.int64),
    )
