"""Projection: how long tuples will take once a node or link has more to do.

Regular traffic is projected from one load, bursty traffic from a series of loads, one per
segment (:mod:`penstock.share.load_signatures`). Two ways of serving are known:

- *shared*: components of equal service times, or a processor that is shared: tau / (1 - p);
- *fcfs*: first come, first served, with unequal service times: a tuple waits for the work it finds,
  tau + sum(lambda tau^2) / (1 - p). With equal times this is the same.

A component's load p is lambda tau, so lambda tau^2 is its load times its tau.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf

import numpy as np
from numpy.typing import NDArray

Loads = NDArray[np.float64]


class Serving(StrEnum):
    """How a node serves the tuples that wait for it."""

    SHARED = "shared"
    FCFS = "fcfs"


class Estimate(StrEnum):
    """Which profiled load of a component stands for what it will take."""

    MAXIMUM = "maximum"
    AVERAGE = "average"
    MINIMUM = "minimum"


class Criterion(StrEnum):
    """Which segments have to be acceptable: every one, their mean, or the best."""

    EVERY = "every"
    MEAN = "mean"
    BEST = "best"


@dataclass(frozen=True)
class ProfiledLoad:
    """What a component was seen to take of a node.

    >>> ProfiledLoad(0.1, 0.2, 0.4).taken(Estimate.MAXIMUM)
    0.4
    """

    minimum: float
    average: float
    maximum: float

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.average <= self.maximum:
            raise ValueError(f"loads out of order: {self}")

    def taken(self, estimate: Estimate = Estimate.MAXIMUM) -> float:
        return {
            Estimate.MINIMUM: self.minimum,
            Estimate.AVERAGE: self.average,
            Estimate.MAXIMUM: self.maximum,
        }[estimate]


@dataclass(frozen=True)
class NodeLoad:
    """The share of a node in use, and the sum of load x tau over what uses it.

    ``load_tau_s`` matters only where tuples are served first come, first served.
    """

    load: float
    load_tau_s: float = 0.0

    def plus(self, load: float, tau_s: float) -> NodeLoad:
        """The load with one more component."""
        return NodeLoad(self.load + load, self.load_tau_s + load * tau_s)

    @property
    def is_full(self) -> bool:
        return self.load >= 1


def execution_time_s(tau_s: float, node: NodeLoad, serving: Serving = Serving.SHARED) -> float:
    """How long a tuple takes on a node, waiting included; infinite on a full one.

    >>> execution_time_s(0.05, NodeLoad(0.5)), execution_time_s(0.05, NodeLoad(1.0))
    (0.1, inf)
    """
    if node.is_full:
        return inf
    if serving is Serving.FCFS:
        return tau_s + node.load_tau_s / (1 - node.load)
    return tau_s / (1 - node.load)


def transmission_time_s(sigma_s: float, load: float) -> float:
    """How long a tuple takes over a link, waiting included; infinite over a full one."""
    return sigma_s / (1 - load) if load < 1 else inf


def impact_s(
    taus_s: Iterable[float], before: NodeLoad, after: NodeLoad, serving: Serving = Serving.SHARED
) -> float:
    """How much longer an application takes whose components on a node have these service times.

    >>> round(impact_s([0.05], NodeLoad(0.4), NodeLoad(0.5)), 4)
    0.0167
    """
    if after.is_full:
        return inf
    return sum(
        execution_time_s(tau_s, after, serving) - execution_time_s(tau_s, before, serving)
        for tau_s in taus_s
    )


def segment_times_s(
    tau_s: float,
    loads: Loads,
    added: float = 0.0,
    serving: Serving = Serving.SHARED,
    load_taus_s: Loads | None = None,
    segment_s: float = inf,
) -> Loads:
    """The time of a tuple in every segment, with ``added`` more load in each of them.

    Where a segment is over before the queue of the one before it has emptied, the larger of both
    segments' times counts. ``load_taus_s`` gives load x tau per segment, ``added`` included;
    without it all service times are ``tau_s``. Takes time linear in the segments.

    >>> segment_times_s(0.1, np.array([0.2, 0.5]), added=0.3).round(3).tolist()
    [0.2, 0.5]
    """
    total = loads + added
    work_s = total * tau_s if load_taus_s is None else load_taus_s
    with np.errstate(divide="ignore", invalid="ignore"):
        wait_s = np.where(total < 1, work_s / (1 - total), inf)
        shared_s = np.where(total < 1, tau_s / (1 - total), inf)
        times_s = tau_s + wait_s if serving is Serving.FCFS else shared_s
        empties_s = np.where(total < 1, np.roll(wait_s, 1) / (1 - total), inf)
    held = (segment_s < empties_s) & (np.arange(len(total)) > 0)
    return np.where(held, np.maximum(times_s, np.roll(times_s, 1)), times_s)


def segment_impacts_s(
    taus_s: Iterable[float],
    loads: Loads,
    added: float,
    serving: Serving = Serving.SHARED,
    segment_s: float = inf,
) -> Loads:
    """How much longer an application takes in every segment; infinite where a node would be full.

    In a segment that was full before nothing is known about the time before, so infinite as well.
    """
    total = np.zeros(len(loads))
    for tau_s in taus_s:
        after = segment_times_s(tau_s, loads, added, serving, segment_s=segment_s)
        before = segment_times_s(tau_s, loads, 0.0, serving, segment_s=segment_s)
        total += np.where(np.isfinite(after), after - np.where(np.isfinite(before), before, 0), inf)
    return total


def is_acceptable(
    time_s: float,
    impacts_s: Loads,
    limit_s: float,
    criterion: Criterion = Criterion.EVERY,
) -> bool:
    """Whether an application that takes ``time_s`` now keeps its limit in the segments asked for.

    >>> impacts_s = np.array([0.1, 0.5])
    >>> [is_acceptable(1.0, impacts_s, 1.4, criterion) for criterion in Criterion]
    [False, True, True]
    """
    counted_s = {
        Criterion.EVERY: impacts_s.max(),
        Criterion.MEAN: impacts_s.mean(),
        Criterion.BEST: impacts_s.min(),
    }[criterion]
    return bool(time_s + counted_s <= limit_s)
