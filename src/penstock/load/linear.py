"""The linear load model: the load of every operator as a row of coefficients over the variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.load.arrays import Floats, Ints, frozen
from penstock.load.linearise import LinearRates, Row, Variable, linear_rates, merge_inputs
from penstock.model.abstract import AbstractNetwork


@dataclass(frozen=True, eq=False)
class Arcs:
    """The streams between operators, one for every reader, by the numbers of their two ends.

    ``cpu`` are rows of processor time and ``bytes`` rows of bytes per second that moving the
    stream from one node to another takes.
    """

    sources: Ints
    targets: Ints
    cpu: Floats
    bytes: Floats

    def __post_init__(self) -> None:
        for array in (self.sources, self.targets, self.cpu, self.bytes):
            frozen(array)

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True, eq=False)
class Opening:
    """What a node pays once as soon as it has one of some units.

    ``row`` are its load coefficients, ``fixed`` what no variable changes, in cores. Units are
    numbers, in order: of operators in a load model, of units in a problem.
    """

    row: Floats
    fixed: float
    units: Ints

    def __post_init__(self) -> None:
        frozen(self.row)
        frozen(self.units)


@dataclass(frozen=True, eq=False)
class LoadModel:
    """Operators and their load coefficients, one column for every variable.

    ``fixed`` is the part of each operator's load that no variable changes, in cores. ``notes`` say
    what was left out and why.
    """

    network: AbstractNetwork
    variables: tuple[Variable, ...]
    coefficients: Floats
    fixed: Floats
    arcs: Arcs
    notes: tuple[str, ...] = ()
    openings: tuple[Opening, ...] = ()

    def __post_init__(self) -> None:
        frozen(self.coefficients)
        frozen(self.fixed)


def load_model(network: AbstractNetwork) -> LoadModel:
    """The load model of an abstract network.

    >>> from penstock.model.abstract import AbstractInput, AbstractNode, AbstractOperator
    >>> load_model(AbstractNetwork(
    ...     (AbstractInput("I1"), AbstractInput("I2")),
    ...     (AbstractOperator("o1", ("I1",), 14), AbstractOperator("o2", ("o1",), 6),
    ...      AbstractOperator("o3", ("I2",), 9, 0.5), AbstractOperator("o4", ("o3",), 14)),
    ...     (AbstractNode("n1"), AbstractNode("n2")),
    ... )).coefficients.tolist()
    [[14.0, 0.0], [6.0, 0.0], [0.0, 9.0], [0.0, 7.0]]
    """
    rates = linear_rates(network)
    width = len(rates.variables)
    loads = _matrix(rates.loads, width)
    arcs = _arcs(network, rates, width)
    opened = _opened(network, rates, width)
    groups = merge_inputs(np.vstack((loads, opened, arcs.cpu, arcs.bytes)), len(network.inputs))
    made = np.vstack((loads, opened))
    used = [group for group in groups if any(made[:, at].any() for at, _ in group)]
    if not used:
        raise _no_load(network)
    first = [group[0][0] for group in used]
    return LoadModel(
        network,
        tuple(_variable(rates.variables, group) for group in used),
        np.ascontiguousarray(loads[:, first]),
        np.array([float(operator.fixed_cpu) for operator in network.operators]),
        Arcs(arcs.sources, arcs.targets, arcs.cpu[:, first], arcs.bytes[:, first]),
        _notes(rates.variables, groups, used),
        _openings(network, np.ascontiguousarray(opened[:, first])),
    )


def _opened(network: AbstractNetwork, rates: LinearRates, width: int) -> Floats:
    """The rows of processor time of the openings."""
    read = _matrix([rates.outputs[opening.input] for opening in network.openings], width)
    costs_s = np.array([opening.cost_s for opening in network.openings]).reshape(-1, 1)
    opened: Floats = read * costs_s
    return opened


def _openings(network: AbstractNetwork, rows: Floats) -> tuple[Opening, ...]:
    numbers = {operator.name: at for at, operator in enumerate(network.operators)}
    return tuple(
        Opening(
            row.copy(),
            float(opening.fixed_cpu),
            np.array(sorted({numbers[name] for name in opening.operators}), dtype=np.int64),
        )
        for opening, row in zip(network.openings, rows, strict=True)
    )


def _no_load(network: AbstractNetwork) -> InputError:
    what = "no operator makes any load"
    if any(operator.fixed_cpu for operator in network.operators):
        what += " that grows with a rate"
    return InputError(what, hint="Give at least one a cost above zero.")


def _matrix(rows: Sequence[Row], width: int) -> Floats:
    matrix = np.zeros((len(rows), width))
    for at, row in enumerate(rows):
        for column, coefficient in row.items():
            matrix[at, column] = coefficient
    return matrix


def _arcs(network: AbstractNetwork, rates: LinearRates, width: int) -> Arcs:
    numbers = {operator.name: at for at, operator in enumerate(network.operators)}
    sizes = _tuple_bytes(network)
    ends = [
        (numbers[name], at)
        for at, operator in enumerate(network.operators)
        for name in operator.inputs
        if name in numbers
    ]
    names = [network.operators[source].name for source, _ in ends]
    moved = _matrix([rates.outputs[name] for name in names], width)
    size = np.array([sizes[name] for name in names], dtype=np.float64)
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return Arcs(
        pairs[:, 0].copy(),
        pairs[:, 1].copy(),
        network.transfer_cost_s * moved,
        size[:, np.newaxis] * moved,
    )


def _tuple_bytes(network: AbstractNetwork) -> dict[str, float]:
    """The size of each stream's tuples; an operator that does not say passes on its widest."""
    sizes = {stream.name: stream.tuple_bytes for stream in network.inputs}
    for operator in network.operators:
        inherited = max(sizes[name] for name in operator.inputs)
        sizes[operator.name] = inherited if operator.tuple_bytes is None else operator.tuple_bytes
    return sizes


def _variable(variables: tuple[Variable, ...], group: list[tuple[int, float]]) -> Variable:
    members = [(variables[at], weight) for at, weight in group]
    return Variable(
        " + ".join(variable.name for variable, _ in members),
        math.fsum(weight * variable.typical for variable, weight in members),
        math.fsum(weight * variable.lower for variable, weight in members),
        math.fsum(weight * variable.peak for variable, weight in members),
    )


def _notes(
    variables: tuple[Variable, ...],
    groups: list[list[tuple[int, float]]],
    used: list[list[tuple[int, float]]],
) -> tuple[str, ...]:
    return tuple(
        f"{variables[group[0][0]].name} makes no load of its own and is left out"
        for group in groups
        if group not in used
    )
