"""Random workloads of chains as in the source, and what every algorithm spends on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.load.arrays import Floats
from penstock.model.devices import Broadcast
from penstock.power.bose import bose
from penstock.power.cuts import CutTable
from penstock.power.energy import energy_of
from penstock.power.min_data_cut import min_data_cut
from penstock.power.min_power_cut import min_power_cut
from penstock.power.plan import CutAlgorithm
from penstock.power.server_ops import server_ops
from penstock.studies.seeds import rng_of

RUNS, SETS = 15, 8
LIMIT = 2.5
"""So many deviations of our sets the source's number may be away."""
RATIOS = (0.01, *(round(0.02 * step, 2) for step in range(1, 11)))
RATIO = 0.16
RIVALS: Mapping[str, CutAlgorithm] = {
    "ServerOps": server_ops,
    "MinDataCut": min_data_cut,
    "MinPowerCut": min_power_cut,
    "BOSe": bose,
}
_BANDWIDTH_PER_S, _SPEED_PER_S = 125_000.0, 1e9
_COSTS = np.linspace(200e6, 100e6, 101)

TOWARDS_HIGH, TOWARDS_LOW, UNIFORM = "zipf to 200 M", "zipf to 100 M", "uniform"


@dataclass(frozen=True)
class PowerWorkload:
    """What a workload is drawn from; ``costs`` names a distribution or gives the least cost."""

    queries: int = 50
    levels: int = 10
    costs: str | float = TOWARDS_HIGH
    power_up_j: float = 0.0


def workload_table(
    workload: PowerWorkload, organisation: str, ratio: float, rng: np.random.Generator
) -> CutTable:
    """One client a query, all alike; the same random numbers whatever the ratio of powers is."""
    queries, levels = workload.queries, workload.levels
    rates = rng.uniform(500, 1000, (queries, 1))
    tuple_bytes = rng.uniform(2000, 4000, (queries, 1))
    selectivities = rng.uniform(0.2, 1.8, (queries, levels))
    projectivities = rng.uniform(0.5, 1.5, (queries, levels))
    costs = _costs(workload.costs, queries, levels, rng)
    tuples: Floats = np.multiply.accumulate(np.hstack((rates, selectivities)), axis=1)
    sizes: Floats = np.multiply.accumulate(np.hstack((tuple_bytes, projectivities)), axis=1)
    work = np.cumsum((costs * tuples[:, :-1])[:, ::-1], axis=1)[:, ::-1]
    # The first cut leaves one operator on the server: the source is never broadcast raw.
    shipped = np.hstack((work[:, 1:], np.zeros((queries, 1))))
    return CutTable(
        Broadcast(organisation, _BANDWIDTH_PER_S, raw_cut=False, power_up_j=workload.power_up_j),
        tuple(f"q{at}" for at in range(queries)),
        np.arange(queries + 1, dtype=np.int64) * levels,
        np.ones(queries, dtype=np.int64),
        (sizes * tuples)[:, 1:].ravel(),
        shipped.ravel() * ratio / _SPEED_PER_S,
        np.ones(queries),
        np.ones(queries, dtype=np.int64),
    )


def _costs(costs: str | float, queries: int, levels: int, rng: np.random.Generator) -> Floats:
    """Cycles per tuple by query and level, the level at the leaf first."""
    if isinstance(costs, float):
        return rng.uniform(costs, costs + 1e6, (queries, levels))
    if costs == UNIFORM:
        return rng.uniform(_COSTS[-1], _COSTS[0], (queries, levels))
    values = _COSTS if costs == TOWARDS_HIGH else _COSTS[::-1]
    ranks = np.arange(1, len(values) + 1)
    columns = []
    for level in range(1, levels + 1):
        chances = ranks ** (-0.2 * level)
        columns.append(rng.choice(values, queries, p=chances / chances.sum()))
    return np.column_stack(columns)


def with_ratio(table: CutTable, ratio: float, former: float) -> CutTable:
    """The same workload on devices with another ratio of processing to tuning power."""
    return replace(table, processing_j=table.processing_j * (ratio / former))


def mean_energies(
    name: str, number: int, workload: PowerWorkload, organisation: str, ratios: Iterable[float]
) -> dict[float, dict[str, float]]:
    """By ratio and algorithm the joules of one set: the mean of its runs."""
    found: dict[float, dict[str, list[float]]] = {
        ratio: {rival: [] for rival in RIVALS} for ratio in ratios
    }
    for run in range(RUNS):
        table = workload_table(workload, organisation, 1.0, rng_of(name, number, run))
        for ratio, by_rival in found.items():
            priced = with_ratio(table, ratio, 1.0)
            for rival, algorithm in RIVALS.items():
                by_rival[rival].append(energy_of(priced, algorithm(priced)).total_j)
    return {
        ratio: {rival: float(np.mean(energies)) for rival, energies in by_rival.items()}
        for ratio, by_rival in found.items()
    }


def saved_percent(energies: Mapping[str, float], rival: str, than: str) -> float:
    """By how many percent one algorithm is under another."""
    return 100 * (1 - energies[rival] / energies[than])


def crossing(xs: list[float], differences: list[float]) -> float:
    """Where a difference first falls below zero, between two points on the straight line.

    >>> crossing([0.0, 2.0, 4.0], [3.0, 1.0, -1.0])
    3.0
    """
    for at in range(1, len(xs)):
        before, after = differences[at - 1], differences[at]
        if after < 0 <= before:
            return xs[at - 1] + (xs[at] - xs[at - 1]) * before / (before - after)
    return xs[0] if differences[0] < 0 else float("inf")
