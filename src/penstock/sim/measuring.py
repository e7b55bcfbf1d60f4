"""Operator loads as a balancer is told them, and what is kept of a system over time."""

from __future__ import annotations

import numpy as np

from penstock.errors import InputError, listed, suggestion
from penstock.load.arrays import Floats
from penstock.model.abstract import AbstractNetwork
from penstock.sim.simulation import Statistics

MEASURES = ("offered", "busy", "inputs")


class LoadMeter:
    """Turns the statistics of a period into a load per operator.

    "offered": the tuples that reached it times what one costs. "busy": the processor time it
    used, which an overloaded node hides. "inputs": what the rates of the inputs let expect, by
    costs and selectivities, however long the queues before it are; behind a join, where rates do
    not follow from the inputs alone, what was offered. Fixed loads count in all of them.
    """

    def __init__(self, network: AbstractNetwork, measure: str = "offered") -> None:
        if measure not in MEASURES:
            hint = f"There are {listed(MEASURES)}. {suggestion(measure, MEASURES)}".strip()
            raise InputError(f"no measure of load called {measure}", hint=hint)
        self._measure = measure
        self._coefficients = input_coefficients(network)
        self._fixed = np.array([float(operator.fixed_cpu) for operator in network.operators])

    def loads(self, statistics: Statistics) -> Floats:
        """The load of every operator, in units of capacity."""
        if self._measure == "busy":
            return statistics.busy
        if self._measure == "offered":
            return statistics.offered
        expected = self._coefficients @ statistics.input_rates + self._fixed
        return np.where(np.isnan(expected), statistics.offered, expected)


def system_columns(network: AbstractNetwork) -> tuple[str, ...]:
    """What is kept over time of a system that balances itself: see :func:`system_row`."""
    nodes = (f"node {node.name}" for node in network.nodes)
    return ("latency_s", "waiting", "moved_load", "moves", *nodes)


def system_row(statistics: Statistics, moved_load: float, moves: int) -> list[float]:
    """Latency, what waits, what was moved so far, and how busy every node was."""
    shown = [statistics.mean_latency_s, float(statistics.waiting), moved_load, float(moves)]
    return [*shown, *statistics.utilisation.tolist()]


def input_coefficients(network: AbstractNetwork) -> Floats:
    """Load of every operator per unit of every input's rate; NaN where a join comes before.

    >>> from penstock.model.abstract import AbstractInput, AbstractNode, AbstractOperator
    >>> input_coefficients(AbstractNetwork(
    ...     (AbstractInput("I"),),
    ...     (AbstractOperator("a", ("I",), 2, 0.5), AbstractOperator("b", ("a",), 4)),
    ...     (AbstractNode("n"),)))
    array([[2.],
           [2.]])
    """
    count = len(network.inputs)
    rates = {stream.name: row for stream, row in zip(network.inputs, np.eye(count), strict=True)}
    rows = []
    for operator in network.operators:
        arriving = sum((rates[name] for name in operator.inputs), np.zeros(count))
        if operator.is_join:
            arriving = np.full(count, np.nan)
        rows.append(arriving * operator.cost_s)
        passed = 1.0 if operator.selectivity is None else operator.selectivity
        rates[operator.name] = arriving * passed
    return np.array(rows)
