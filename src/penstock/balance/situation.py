"""What a balancing decision is made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from penstock.errors import InputError
from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.series import LoadSeries, load_series

HOMELESS = -1
# An operator of which less is known stays where it is: its mean could be anything.
LEAST_KNOWN = 0.5


@dataclass(frozen=True)
class Thresholds:
    """When a decision is worth it.

    ``epsilon``: difference of relative loads from which a pair is evened out. ``delta``: score
    from which an operator may change sides for its correlation alone. ``theta``: correlation of
    two nodes that is good enough.
    """

    epsilon: float = 0.1
    delta: float = 0.2
    theta: float = 0.8

    def __post_init__(self) -> None:
        for name, least, most in (("epsilon", 0, np.inf), ("delta", 0, 1), ("theta", -1, 1)):
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(
                    f"{name} is {value}", hint=f"Give a number from {least} to {most:g}."
                )


@dataclass(frozen=True, eq=False)
class Situation:
    """The load series of all operators, where they are, and what the nodes can take.

    ``assignment`` has the number of an operator's node, or -1 for an operator whose node has
    left. ``capacities`` are in the units of the loads; a node that has just joined has no
    operators and a series of zeros. Operators that are not ``movable`` stay where they are.
    """

    series: LoadSeries
    assignment: Ints
    capacities: Floats
    movable: Flags

    @classmethod
    def of(
        cls,
        samples: LoadSeries | ArrayLike,
        assignment: ArrayLike,
        capacities: ArrayLike,
        movable: ArrayLike | None = None,
    ) -> Situation:
        """A situation from plain arrays, checked.

        >>> Situation.of([[0.5, 0.7], [0.2, 0.1]], [0, 0], [1.0, 1.0]).node_loads
        array([0.75, 0.  ])
        """
        series = samples if isinstance(samples, LoadSeries) else load_series(samples)
        count = series.operators
        return cls(
            series,
            np.array(assignment, dtype=np.int64),
            np.array(capacities, dtype=np.float64),
            np.ones(count, bool) if movable is None else np.array(movable, dtype=bool),
        )

    def __post_init__(self) -> None:
        count = (self.series.operators,)
        if self.assignment.shape != count or self.movable.shape != count:
            raise InputError(
                f"{count[0]} operators, {self.assignment.size} places and "
                f"{self.movable.size} flags of who may move",
                hint="Give one of each per operator.",
            )
        if not self.nodes or not np.all(np.isfinite(self.capacities) & (self.capacities > 0)):
            raise InputError(
                f"capacities {self.capacities.tolist()}",
                hint="Give at least one node, each more than zero.",
            )
        if np.any((self.assignment < HOMELESS) | (self.assignment >= self.nodes)):
            raise InputError(
                f"an operator on node {int(self.assignment.max())} of {self.nodes}",
                hint="Nodes count from 0; -1 is for an operator whose node has left.",
            )

    @property
    def nodes(self) -> int:
        return int(self.capacities.size)

    @cached_property
    def free(self) -> Flags:
        """Operators a plan may move: movable, with a load, and known well enough."""
        return self.movable & (self.series.means > 0) & (self.series.known >= LEAST_KNOWN)

    @cached_property
    def node_series(self) -> Floats:
        """The load series of every node."""
        return self.series.totals(self.assignment, self.nodes)

    @cached_property
    def node_loads(self) -> Floats:
        """The mean load of every node as a share of its capacity."""
        loads: Floats = self.node_series.mean(axis=1) / self.capacities
        return loads
