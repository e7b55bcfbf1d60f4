"""How many rows of every input have come: what micro-batches are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from penstock.load.arrays import Floats
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.sim.arrivals import Arrivals
from penstock.sim.simulation import Simulation


class RowFeed(Protocol):
    """Rows that come in as time passes."""

    def rows_until(self, now_s: float) -> Floats:
        """The rows of every input since the last call; time never goes back."""
        ...


class EvenRows:
    """Rows at constant rates, without any chance in it.

    >>> feed = EvenRows([10.0, 2.0])
    >>> feed.rows_until(0.5), feed.rows_until(1.5)
    (array([5., 1.]), array([10.,  2.]))
    """

    def __init__(self, rates_per_s: Sequence[float]) -> None:
        self._rates_per_s = np.array(rates_per_s, dtype=np.float64)
        self._last_s = 0.0

    def rows_until(self, now_s: float) -> Floats:
        rows: Floats = self._rates_per_s * (now_s - self._last_s)
        self._last_s = now_s
        return rows


class ArrivingRows:
    """Rows as they arrive one by one, by whatever rule; the same seed, the same rows."""

    def __init__(
        self, inputs: Sequence[AbstractInput], arrivals: Mapping[str, Arrivals], seed: int
    ) -> None:
        network = AbstractNetwork(
            tuple(inputs),
            tuple(AbstractOperator(f"{stream.name}.", (stream.name,), 0.0) for stream in inputs),
            (AbstractNode("counter"),),
        )
        self._counter = Simulation(network, arrivals, [0] * len(inputs), seed)

    def rows_until(self, now_s: float) -> Floats:
        self._counter.advance(now_s)
        found = self._counter.statistics()
        rows: Floats = np.rint(found.input_rates * found.period_s)
        return rows
