"""The runs of the window join's study: points, and what is measured at one of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np

from penstock.balance.groups.directory import SizeLimits
from penstock.balance.groups.reports import GroupSettings
from penstock.sim.join_cluster.arriving import GroupLogs, draw_arrivals
from penstock.sim.join_cluster.cluster import JoinCluster
from penstock.sim.join_cluster.measuring import JoinMeasurements
from penstock.sim.join_cluster.settings import JoinClusterSettings, JoinWorkload
from penstock.studies.report import Value

UNTIL_S, WARM_S = 1_200.0, 600.0
THETA_BYTES = 1.5e6
TUNED, PLAIN = "tuned", "untuned"
BALANCING = ("never", "random", "load")

JoinPoint: TypeAlias = tuple[str, float, int, str, float, int]
"""What is studied, rate, workers, tuning or moves, distribution epoch, slots."""

_WORKERS = (1, 2, 3, 4, 5)
_SEED = 1
_BUSY = 0.95
_SLOW, _HOT = "one worker at a third of its speed", "one key of 0.25 % of the tuples"


def rate_points(quick: bool) -> list[JoinPoint]:
    """Rates up to overload for every number of workers; four of them also without tuning."""
    rates: dict[int, tuple[int, ...]] = {
        1: (1_000, 1_500, 2_000, 2_500),
        2: (1_000, 2_000, 3_000, 3_500, 4_000),
        3: (1_000, 2_000, 3_000, 4_000, 4_500, 5_000, 5_500),
        4: (1_000, 1_500, 2_000, 3_000, 3_500, 4_000, 5_000, 5_500, 6_000, 6_500),
        5: (1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 6_500, 7_000, 7_500),
    }
    plain: tuple[int, ...] = (1_000, 1_500, 2_000, 3_000, 3_500, 3_750, 4_000)
    if quick:
        rates, plain = {3: (4_500, 5_500), 4: (1_500, 3_500, 4_000, 6_000, 6_500)}, (3_500, 4_000)
    found = [(rate, workers, TUNED) for workers, list_ in rates.items() for rate in list_]
    found += [(rate, 4, PLAIN) for rate in plain]
    # In the order of rates: whoever runs them one after the other draws the tuples once a rate.
    return [
        ("rates", float(rate), workers, tuning, 2.0, 1) for rate, workers, tuning in sorted(found)
    ]


def worker_points(quick: bool) -> list[JoinPoint]:
    """The default rate on more and more workers, and on as many as are needed."""
    counts = (1, 3, 5) if quick else _WORKERS
    fixed: list[JoinPoint] = [("workers", 1_500.0, count, TUNED, 2.0, 1) for count in counts]
    return [*fixed, ("adaptive", 1_500.0, max(counts), TUNED, 2.0, 1)]


def epoch_points(quick: bool) -> list[JoinPoint]:
    """Distribution epochs from short to long, on three workers."""
    epochs = (0.5, 4.0) if quick else (0.25, 0.5, 1.0, 2.0, 3.0, 4.0)
    return [("epochs", 1_500.0, 3, TUNED, epoch, 1) for epoch in epochs]


def buffer_points(quick: bool) -> list[JoinPoint]:
    """Workers served in more and more sub-groups."""
    counts = (1, 4) if quick else (1, 2, 3, 4, 6, 12)
    return [("buffer", 1_500.0, 12, TUNED, 2.0, count) for count in counts]


def balancing_points(quick: bool) -> list[JoinPoint]:
    """A slow worker and a hot key, with groups that stay, move at random, or move by load."""
    return [
        (trouble, 3_000.0, 4, moves, 2.0, 1) for trouble in (_SLOW, _HOT) for moves in BALANCING
    ]


def measure(point: JoinPoint) -> dict[str, Value]:
    """One run."""
    study, rate, workers, kind, distribution_s, slots = point
    hot = 0.0025 if study == _HOT else 0.0
    workload = JoinWorkload(rate_per_s=rate, hot=hot)
    settings = JoinClusterSettings(
        workers=workers,
        distribution_s=distribution_s,
        slots=slots,
        tuning=None if kind == PLAIN else SizeLimits(THETA_BYTES),
        groups=GroupSettings(
            choice="load" if kind == "load" else "random",
            busy_above=_BUSY if kind == "load" else None,
            adaptive=study == "adaptive",
        ),
        speeds=(1 / 3,) if study == _SLOW else (),
        moves=kind != "never",
    )
    cluster = JoinCluster(workload, settings, _drawn(workload, UNTIL_S), UNTIL_S, _SEED)
    found = cluster.run(WARM_S)
    return {**_named(point), **_columns(found), "moves_made": cluster.moves}


@lru_cache(maxsize=1)
def _drawn(workload: JoinWorkload, until_s: float) -> GroupLogs:
    return draw_arrivals(workload, until_s, _SEED)


def _named(point: JoinPoint) -> dict[str, Value]:
    study, rate, workers, kind, distribution_s, slots = point
    if study in ("workers", "adaptive"):
        return {"workers": workers, "adaptive": int(study == "adaptive")}
    if study == "epochs":
        return {"distribution_s": distribution_s}
    if study == "buffer":
        peak = 2 * rate * distribution_s / 2 * (1 + 1 / slots)
        return {"slots": slots, "predicted": peak}
    if study == "rates":
        return {"rate_per_s": rate, "workers": workers, "tuning": kind}
    short = "slow" if study == _SLOW else "hot"
    return {"trouble": study, "moves": kind, "case": f"{short}, {kind}"}


def _columns(found: JoinMeasurements) -> dict[str, Value]:
    communication = found.communication_s
    return {
        "delay_s": found.delay_s,
        "longest_s": found.longest_s,
        "results_per_s": found.results / found.measured_s,
        "cpu_s": float(np.mean(found.cpu_s)),
        "idle_s": float(np.mean(found.idle_s)),
        "communication_s": float(np.mean(communication)),
        "least_communication_s": min(communication),
        "most_communication_s": max(communication),
        "all_communication_s": sum(communication),
        "window_mb": found.window_bytes / 1e6,
        "waiting": found.waiting,
        "mean_workers": found.workers,
    }
