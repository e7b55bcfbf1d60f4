"""Rates and loads as linear functions of as few variables as possible.

Input rates are variables. The output of an operator with varying selectivity is one more, and so
is the number of pairs that meet in a join: its load and its output are multiples of that. Two
things keep the number of variables down:

- joins whose inputs are multiples of each other's share one variable;
- of the variables that are not inputs, those that appear nowhere are dropped, and those that
  appear everywhere in the same proportion (two varying streams that only ever meet in one union)
  become one: their weighted sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Floats
from penstock.model.abstract import AbstractNetwork, AbstractOperator

Row = Mapping[int, float]
"""A linear function: coefficients by the number of the variable."""

_RELATIVE = 1e-12


@dataclass(frozen=True)
class Variable:
    """What loads depend on: its typical, least and greatest value, NaN where not known."""

    name: str
    typical: float = math.nan
    lower: float = 0.0
    peak: float = math.nan


@dataclass(frozen=True)
class LinearRates:
    """The linear form of a network: variables, the input row of every operator, its output row.

    ``loads`` are rows of processor seconds per second, ``outputs`` rows of tuples per second.
    """

    variables: tuple[Variable, ...]
    loads: tuple[Row, ...]
    outputs: Mapping[str, Row]


def linear_rates(network: AbstractNetwork) -> LinearRates:
    """One variable for every input, join and varying operator; linear in the network."""
    walk = _Walk(network)
    for operator in network.operators:
        walk.visit(operator)
    return LinearRates(tuple(walk.variables), tuple(walk.loads), walk.rows)


class _Walk:
    """One pass over the operators, each after all it reads."""

    def __init__(self, network: AbstractNetwork) -> None:
        self.variables = [
            Variable(
                stream.name,
                math.nan if stream.rate_per_s is None else stream.rate_per_s,
                stream.lower_per_s,
                math.nan if stream.peak_per_s is None else stream.peak_per_s,
            )
            for stream in network.inputs
        ]
        self.rows: dict[str, Row] = {
            stream.name: {at: 1.0} for at, stream in enumerate(network.inputs)
        }
        self.loads: list[Row] = []
        self._products: dict[object, tuple[int, float]] = {}

    def visit(self, operator: AbstractOperator) -> None:
        if operator.is_join:
            work = self._pairs(operator)
        else:
            work = _sum([self.rows[name] for name in operator.inputs])
        self.loads.append(_times(operator.cost_s, work))
        if operator.is_varying:
            self.rows[operator.name] = {self._add(self._varying(operator, work)): 1.0}
        else:
            assert operator.selectivity is not None
            self.rows[operator.name] = _times(operator.selectivity, work)

    def _add(self, variable: Variable) -> int:
        self.variables.append(variable)
        return len(self.variables) - 1

    def _varying(self, operator: AbstractOperator, work: Row) -> Variable:
        typical = math.nan if operator.selectivity is None else operator.selectivity
        return Variable(
            operator.name,
            typical * self._value(work, "typical"),
            0.0,
            typical * self._value(work, "peak"),
        )

    def _pairs(self, operator: AbstractOperator) -> Row:
        """Pairs per second, as a multiple of a variable that all joins of these two share."""
        left, right = (self.rows[name] for name in operator.inputs)
        if not left or not right:
            return {}
        assert operator.window_s is not None
        scale = operator.window_s * max(left.values()) * max(right.values())
        key = frozenset((_direction(left), _direction(right)))
        if key not in self._products:
            self._products[key] = self._product(operator, left, right, scale)
        at, per_scale = self._products[key]
        return {at: scale * per_scale}

    def _product(
        self, operator: AbstractOperator, left: Row, right: Row, scale: float
    ) -> tuple[int, float]:
        """A variable for a join, its output where that is fixed, else its pairs; and what a pair
        of streams of a given scale is in terms of it."""
        assert operator.window_s is not None
        fixed = 0.0 if operator.is_varying else operator.selectivity or 0.0
        per_pair = fixed or 1.0
        typical, lower, peak = (
            per_pair * operator.window_s * self._value(left, which) * self._value(right, which)
            for which in ("typical", "lower", "peak")
        )
        name = operator.name if fixed else f"pairs of {operator.name}"
        return self._add(Variable(name, typical, lower, peak)), 1.0 / (per_pair * scale)

    def _value(self, row: Row, which: str) -> float:
        return math.fsum(
            coefficient * getattr(self.variables[at], which) for at, coefficient in row.items()
        )


def _sum(rows: list[Row]) -> Row:
    total: dict[int, float] = {}
    for row in rows:
        for at, coefficient in row.items():
            total[at] = total.get(at, 0.0) + coefficient
    return total


def _times(factor: float, row: Row) -> Row:
    return {at: factor * coefficient for at, coefficient in row.items()} if factor else {}


def _direction(row: Row) -> tuple[tuple[int, float], ...]:
    """The row up to a factor; rounded, so that equal ones are found equal."""
    largest = max(row.values())
    return tuple((at, float(f"{row[at] / largest:.12g}")) for at in sorted(row))


def merge_inputs(stacked: Floats, inputs: int) -> list[list[tuple[int, float]]]:
    """Which columns stay as variables: for each, the columns in it and their weights.

    The first ``inputs`` columns stay as they are, even if zero. Of the others, zero ones are left
    out and multiples of each other become one.

    >>> merge_inputs(np.array([[1.0, 0.0, 2.0, 4.0], [0.0, 0.0, 1.0, 2.0]]), 1)
    [[(0, 1.0)], [(2, 1.0), (3, 2.0)]]
    """
    kept = [[(at, 1.0)] for at in range(inputs)]
    found: dict[object, int] = {}
    for at in range(inputs, stacked.shape[1]):
        largest = float(stacked[:, at].max(initial=0.0))
        if largest == 0.0:
            continue
        key = _column_key(stacked[:, at] / largest)
        if key in found:
            group = kept[found[key]]
            group.append((at, largest / float(stacked[:, group[0][0]].max())))
        else:
            found[key] = len(kept)
            kept.append([(at, 1.0)])
    return kept


def _column_key(column: Floats) -> tuple[bytes, bytes]:
    places = np.flatnonzero(column)
    rounded = np.round(column[places] / _RELATIVE) * _RELATIVE
    return places.tobytes(), rounded.tobytes()
