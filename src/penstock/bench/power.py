"""Cuts and broadcasts: BOSe's time and its ratio to the plain transcription, the lower bound's
time, and how fast the disseminator sends.

Times are the best of several goes: planning is short, and what disturbs it only adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from penstock.bench.dissemination import dissemination_cases
from penstock.bench.placement import best_s
from penstock.bench.plain.cuts import PlainCuts
from penstock.bench.report import BenchCase, Report, compared, limited
from penstock.model.devices import ORGANISATIONS, SORTED, WEIGHTED, Broadcast, DeviceProfile
from penstock.power.bose import bose, bose_steps
from penstock.power.cuts import cut_table
from penstock.power.energy import energy_of
from penstock.power.lower_bound import lower_bound_j
from penstock.power.problem import ChainOperator, ChainQuery, ChainSource, PowerProblem

USUAL, LARGE, PLAIN = (300, 10), (10_000, 20), (100, 10)
DEAR = 1_000
"""Computing is this many times as dear where BOSe is to take as many steps as it ever does."""


def power(quick: bool, say: Callable[[str], None]) -> Report:
    """How fast cuts are planned, and cycles sent."""
    return Report("power", tuple(_cases(quick, say)))


def _cases(quick: bool, say: Callable[[str], None]) -> Iterator[BenchCase]:
    bose(cut_table(chains(*PLAIN, SORTED)))
    for organisation in ORGANISATIONS:
        say(f"{organisation} broadcast")
        usual = cut_table(chains(*USUAL, organisation))
        name = f"BOSe, {organisation}, {USUAL[0]} x {USUAL[1]}"
        yield limited(name, 1e3 * best_s(partial(bose, usual), 5), "ms", at_most=50)
    say("plain transcription")
    yield _against_plain(PLAIN if quick else USUAL)
    say("a large broadcast")
    yield from _large()
    say("disseminator")
    yield from dissemination_cases(quick)


def _against_plain(size: tuple[int, int]) -> BenchCase:
    problem = chains(*size, SORTED)
    table, plain = cut_table(problem), PlainCuts(problem)
    assert table.cut_numbers(bose(table)).tolist() == plain.bose()
    name = f"plain transcription, sorted, {size[0]} x {size[1]}"
    return compared(name, best_s(plain.bose, 1), "s", best_s(lambda: bose(table), 5), at_least=50)


def _large() -> Iterator[BenchCase]:
    queries, levels = LARGE
    problem = chains(queries, levels, SORTED)
    table = cut_table(problem)
    made = best_s(lambda: cut_table(problem), 1)
    yield limited(f"table of cuts, {queries:,} x {levels}", made, "s")
    for organisation in ORGANISATIONS:
        arranged = replace(table, broadcast=replace(table.broadcast, organisation=organisation))
        name = f"BOSe, {organisation}, {queries:,} x {levels}"
        yield limited(name, best_s(partial(bose, arranged), 2), "s", at_most=10)
    dear = replace(table, processing_j=DEAR * table.processing_j)
    name = f"BOSe, sorted, {queries:,} x {levels}, computing {DEAR:,} times as dear"
    yield limited(name, best_s(partial(bose, dear), 1), "s", at_most=10)
    yield limited(f"{name}: steps", len(bose_steps(dear)), "")
    weighted = replace(table, broadcast=replace(table.broadcast, organisation=WEIGHTED))
    plan = bose(weighted)
    name = f"lower bound, {queries:,} x {levels}"
    yield limited(name, best_s(lambda: lower_bound_j(weighted, plan), 1), "s")
    ratio = energy_of(weighted, plan).total_j / lower_bound_j(weighted, plan)
    yield limited(f"{name}: BOSe, weighted, over it", ratio, "")


def chains(queries: int, levels: int, organisation: str) -> PowerProblem:
    """Chains as in the source's study: a device a query, selectivities and sizes at random."""
    rng = np.random.default_rng(queries)
    selectivity = rng.uniform(0.2, 1.8, (queries, levels)).tolist()
    projectivity = rng.uniform(0.5, 1.5, (queries, levels)).tolist()
    cycles = rng.uniform(100e6, 200e6, (queries, levels)).tolist()
    return PowerProblem(
        Broadcast(organisation, 125_000.0, raw_cut=False),
        tuple(
            ChainSource(f"s{at}", rate, size)
            for at, (rate, size) in enumerate(
                zip(rng.uniform(500, 1000, queries), rng.uniform(2000, 4000, queries), strict=True)
            )
        ),
        tuple(
            DeviceProfile(f"d{at}", 1e9, 0.16, watts)
            for at, watts in enumerate(rng.uniform(0.5, 2.0, queries).tolist())
        ),
        tuple(
            ChainQuery(
                f"q{at}",
                f"s{at}",
                (f"d{at}",),
                tuple(map(ChainOperator, cycles[at], selectivity[at], projectivity[at])),
            )
            for at in range(queries)
        ),
    )
