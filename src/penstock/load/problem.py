"""What a planner is given: units to place, nodes to place them on, what is known about rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from penstock.errors import InputError, listed
from penstock.load.arrays import Flags, Floats, Ints, frozen, sums_by
from penstock.load.linear import Arcs, LoadModel, Opening, load_model
from penstock.model.abstract import AbstractNetwork

UNPINNED = -1


@dataclass(frozen=True, eq=False)
class Problem:
    """Units with their load rows (m x d), the streams between them, and nodes.

    A unit is one operator, or several that have to run on the same node; ``members`` are the
    operators of each. ``fixed`` is what each unit needs of the CPU whatever the rates are, so that
    a plan A is feasible at rates R where A rows R <= capacities - A fixed. ``openings`` come on top
    of that: a node that has one or more of an opening's units pays it, once. ``lower``, ``rates``
    and ``peaks`` are values of the variables; ``pinned`` holds the node a unit must go to, or -1.
    Bandwidths are infinite where not limited.
    """

    units: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    rows: Floats
    fixed: Floats
    arcs: Arcs
    variables: tuple[str, ...]
    nodes: tuple[str, ...]
    capacities: Floats
    lower: Floats
    rates: Floats
    peaks: Floats
    bandwidths: Floats
    total_bandwidth: float
    sticky: Flags
    pinned: Ints
    notes: tuple[str, ...] = ()
    openings: tuple[Opening, ...] = ()

    def __post_init__(self) -> None:
        for array in (self.rows, self.fixed, self.capacities, self.lower, self.rates, self.peaks):
            frozen(array)
        for per_unit in (self.bandwidths, self.sticky, self.pinned):
            frozen(per_unit)
        if not (self.totals > 0).all():
            raise InputError("a variable that makes no load", hint="Leave it out.")
        self._check_room()

    def _check_room(self) -> None:
        """Raises where no plan could be feasible."""
        if self.ideal_room <= 0:
            raise InputError(
                f"the fixed loads alone need {1 - self.ideal_room:.2f} times the CPU there is",
                hint="Add nodes or larger ones.",
            )
        taken = float(self.lower_point.sum())
        if taken >= self.ideal_room:
            what = "the lower bounds of the rates alone need"
            if self.total_fixed:
                what, taken = (
                    "the lower bounds of the rates and the fixed loads together need",
                    taken + 1 - self.ideal_room,
                )
            raise InputError(
                f"{what} {taken:.2f} times the CPU there is",
                hint="Add nodes or lower the bounds.",
            )

    @property
    def size(self) -> tuple[int, int, int]:
        """Units, nodes, variables."""
        return len(self.rows), len(self.capacities), self.rows.shape[1]

    @cached_property
    def totals(self) -> Floats:
        """The load coefficient of each variable over all units, and every opening once."""
        return np.asarray(self.rows.sum(axis=0) + self.opening_rows.sum(axis=0))

    @cached_property
    def total_fixed(self) -> float:
        """The fixed loads of all units, and of every opening once."""
        return float(self.fixed.sum()) + sum(opening.fixed for opening in self.openings)

    @cached_property
    def opening_rows(self) -> Floats:
        """The load rows of the openings (k x d)."""
        rows = [opening.row for opening in self.openings]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.rows.shape[1])

    @cached_property
    def opens(self) -> Flags:
        """Which openings each unit needs (m x k)."""
        found = np.zeros((len(self.rows), len(self.openings)), dtype=np.bool_)
        for at, opening in enumerate(self.openings):
            found[opening.units, at] = True
        return found

    @property
    def capacity(self) -> float:
        return float(self.capacities.sum())

    @property
    def ideal_room(self) -> float:
        """What fixed loads leave of all CPU, as a part of it."""
        return 1.0 - self.total_fixed / self.capacity

    @cached_property
    def full_rows(self) -> Floats:
        """The load rows of the units where the ideal plan is full: their fixed loads included.

        All CPU is in use where l1 r1 + … + ld rd = C - c (l: ``totals``, C: all CPU, c: all fixed
        loads). There a fixed load f is f / (C - c) of what the streams need, so it is the row
        f l / (C - c). These are the rows that say how large a unit is; without fixed loads they
        are ``rows``.
        """
        left = self.capacity - self.total_fixed
        found: Floats = self.rows + self.fixed[:, np.newaxis] * (self.totals / left)
        return found

    def loads_at(self, rates: Floats) -> Floats:
        """The load of every unit at these values of the variables."""
        loads: Floats = self.rows @ rates + self.fixed
        return loads

    @property
    def shares(self) -> Floats:
        """Each node's part of all CPU."""
        return self.capacities / self.capacity

    @cached_property
    def lower_point(self) -> Floats:
        """The lower bound in the space where the ideal hyperplane is x1 + … + xd = 1."""
        return self.lower * self.totals / self.capacity

    def without_lower_bound(self) -> Problem:
        """The same, with nothing known about the rates."""
        return replace(self, lower=np.zeros_like(self.lower))


def placement_problem(network: AbstractNetwork) -> Problem:
    """The problem of placing an abstract network's operators on its nodes.

    Operators of one table or unit become one unit, at the place of the first of them.
    """
    return problem_of(load_model(network))


def problem_of(model: LoadModel) -> Problem:
    """The problem of placing the operators of a load model, their units drawn together."""
    network = model.network
    names = list(dict.fromkeys(operator.group for operator in network.operators))
    number = {name: at for at, name in enumerate(names)}
    unit_of = np.array([number[operator.group] for operator in network.operators], dtype=np.int64)
    rows = np.zeros((len(names), model.coefficients.shape[1]))
    np.add.at(rows, unit_of, model.coefficients)
    fixed = sums_by(unit_of, model.fixed, len(names))
    members: list[list[str]] = [[] for _ in names]
    for operator, at in zip(network.operators, unit_of, strict=True):
        members[at].append(operator.name)
    openings = tuple(_of_units(opening, unit_of) for opening in model.openings)
    totals = sum((opening.row for opening in openings), rows.sum(axis=0))
    rates, peaks, assumed = _known_rates(model, totals)
    return Problem(
        units=tuple(names),
        members=tuple(map(tuple, members)),
        rows=rows,
        fixed=fixed,
        arcs=_between_units(model.arcs, unit_of),
        variables=tuple(variable.name for variable in model.variables),
        nodes=tuple(node.name for node in network.nodes),
        capacities=np.array([float(node.cpu) for node in network.nodes]),
        lower=np.array([variable.lower for variable in model.variables]),
        rates=rates,
        peaks=peaks,
        bandwidths=_limits([node.bandwidth_per_s for node in network.nodes]),
        total_bandwidth=float(_limits([network.bandwidth_per_s])[0]),
        sticky=_sticky(network, unit_of, len(names)),
        pinned=_pinned(network, unit_of, len(names)),
        notes=(*model.notes, *assumed),
        openings=openings,
    )


def _of_units(opening: Opening, unit_of: Ints) -> Opening:
    """The opening with the numbers of other units: ``unit_of`` those it is given for."""
    return replace(opening, units=np.unique(unit_of[opening.units]))


def _limits(given: Sequence[float | None]) -> Floats:
    return np.array([np.inf if limit is None else float(limit) for limit in given])


def _sticky(network: AbstractNetwork, unit_of: Ints, units: int) -> Flags:
    sticky = np.zeros(units, dtype=np.bool_)
    sticky[unit_of[[operator.is_sticky for operator in network.operators]]] = True
    return sticky


def _pinned(network: AbstractNetwork, unit_of: Ints, units: int) -> Ints:
    numbers = {node.name: at for at, node in enumerate(network.nodes)}
    pinned = np.full(units, UNPINNED, dtype=np.int64)
    for operator, unit in zip(network.operators, unit_of, strict=True):
        if operator.node:
            pinned[unit] = numbers[operator.node]
    return pinned


def _between_units(arcs: Arcs, unit_of: Ints) -> Arcs:
    sources, targets = unit_of[arcs.sources], unit_of[arcs.targets]
    between = sources != targets
    return Arcs(sources[between], targets[between], arcs.cpu[between], arcs.bytes[between])


def _known_rates(model: LoadModel, totals: Floats) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Typical and greatest rates; where none is known, the one that makes an average load.

    Without any, all variables make the same load and together use half of what is left of all CPU
    by fixed loads.
    """
    typical = np.array([variable.typical for variable in model.variables])
    unknown = np.isnan(typical)
    capacity = sum(float(node.cpu) for node in model.network.nodes)
    made = (typical * totals)[~unknown]
    opened = sum(opening.fixed for opening in model.openings)
    left = max(0.0, capacity - float(model.fixed.sum()) - opened)
    load = float(made.mean()) if len(made) else left / 2 / len(totals)
    lower = np.array([variable.lower for variable in model.variables])
    rates = np.maximum(np.where(unknown, load / totals, typical), lower)
    peaks = np.array([variable.peak for variable in model.variables])
    peaks = np.where(np.isnan(peaks), rates, peaks)
    names = [variable.name for variable, open in zip(model.variables, unknown, strict=True) if open]
    note = f"no typical rate is known of {listed(names)}; planners that need one take an average"
    return rates, peaks, (note,) if names else ()
