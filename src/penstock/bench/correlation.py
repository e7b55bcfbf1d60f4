"""Planning by correlation: against a plain transcription of the source, and on a ladder.

Times are processor time: one thread works, and neighbours on the machine do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from penstock.balance.global_correlation import global_assignment
from penstock.balance.pairwise import improved_selective_exchange, redistribution
from penstock.balance.situation import Situation
from penstock.bench.plain.cluster import global_plan
from penstock.bench.plain.pairs import PairsWorld, two_way
from penstock.bench.report import BenchCase, Report, compared, limited
from penstock.load.arrays import Floats
from penstock.load.series import LoadSeries, load_series

SAMPLES = 10
PER_NODE = 10

Say = Callable[[str], None]


def correlation(quick: bool, say: Say) -> Report:
    """Times of the global algorithm and of one pairwise period; h = 10, 10 operators a node."""
    say("compiling")
    _warm_up()
    cases = [
        *_against_plain((10, 20) if quick else (10, 20, 50), say),
        *_ladder((100, 200) if quick else (100, 200, 500, 1_000), say),
        *_pairwise(1_000, say),
    ]
    return Report("correlation", tuple(cases))


def alternating_loads(nodes: int, rng: np.random.Generator) -> Floats:
    """Chains of ten operators whose inputs alternate between two rates at random offsets."""
    period = np.arange(SAMPLES)
    offsets = rng.uniform(0, SAMPLES, (nodes, 1))
    rates = np.where((period + offsets) % SAMPLES < SAMPLES / 2, 1.6, 0.4)
    rates *= rng.uniform(0.8, 1.2, (nodes, 1))
    passed = np.cumprod(rng.uniform(0.8, 1.2, (nodes, PER_NODE)), axis=1)
    loads = (rates[:, None, :] * passed[:, :, None]).reshape(nodes * PER_NODE, SAMPLES)
    loads *= rng.uniform(0.95, 1.05, loads.shape)
    scaled: Floats = 0.7 * nodes * loads / loads.sum(axis=0).mean()
    return scaled


def _series(nodes: int) -> LoadSeries:
    return load_series(alternating_loads(nodes, np.random.default_rng([nodes, 7])))


def _best(function: Callable[[], object], times: int) -> float:
    """The shortest of several runs: others use this machine, too."""
    found = []
    for _ in range(times):
        began = time.process_time()
        function()
        found.append(time.process_time() - began)
    return min(found)


def _warm_up() -> None:
    series = _series(4)
    global_assignment(series, np.ones(4))
    situation = Situation.of(series, np.arange(40) % 4, np.ones(4))
    improved_selective_exchange(situation)
    redistribution(situation)


def _against_plain(sizes: tuple[int, ...], say: Say) -> list[BenchCase]:
    cases = []
    for nodes in sizes:
        series = _series(nodes)
        fast = _best(partial(global_assignment, series, np.ones(nodes)), 5)
        count = series.operators
        world = PairsWorld(series.quanta.tolist(), [-1] * count, [True] * count, [1.0] * nodes)
        say(f"global plan for {nodes} nodes, plain transcription")
        plain = _best(partial(global_plan, world, 0.8), 1)
        same = world.plan == global_assignment(series, np.ones(nodes)).tolist()
        say(f"global plan for {nodes} nodes: {plain / fast:.0f} times faster")
        goal = 100 if nodes == 50 else None
        cases.append(compared(f"global, {nodes} nodes: plans a second", 1 / fast, "plans/s",
                              1 / plain, at_least=goal))  # fmt: skip
        cases.append(
            BenchCase(f"global, {nodes} nodes: the same plan as plain", float(same), "", ok=same)
        )
    return [*cases, _pair_case(say)]


def _pair_case(say: Say) -> BenchCase:
    """Redistribution of one pair, including the set-up of its covariances."""
    say("redistribution of one pair")
    series = _series(2)
    where = np.arange(20) % 2
    # More than epsilon apart, so that the pair is dealt with.
    where[:4] = 0
    situation = Situation.of(series, where, np.ones(2))
    fast = _best(lambda: redistribution(situation), 50)
    world = PairsWorld(series.quanta.tolist(), where.tolist(), [True] * 20, [1.0, 1.0])
    plain = _best(lambda: two_way(world, 0, 1), 5)
    return compared("redistribution of one pair: plans a second", 1 / fast, "plans/s", 1 / plain)


def _ladder(sizes: tuple[int, ...], say: Say) -> list[BenchCase]:
    cases = []
    for nodes in sizes:
        say(f"global plan for {nodes} nodes")
        series = _series(nodes)
        took = _best(partial(global_assignment, series, np.ones(nodes)), 1 if nodes > 500 else 2)
        limit = 10.0 if nodes == 1_000 else None
        cases.append(
            limited(f"global, {nodes} nodes with {series.operators:,} operators", took, "s", limit)
        )
    return cases


def _pairwise(nodes: int, say: Say) -> list[BenchCase]:
    cases = []
    series = _series(nodes)
    start = np.random.default_rng(3).integers(0, nodes, series.operators)
    situation = Situation.of(series, start, np.ones(nodes))
    for name, decide in (
        ("improved selective exchange", improved_selective_exchange),
        ("redistribution", redistribution),
    ):
        say(f"pairwise step over {nodes} nodes, {name}")
        took = _best(partial(decide, situation), 5)
        cases.append(limited(f"pairwise step, {nodes} nodes, {name}", 1_000 * took, "ms", 100.0))
    return cases
