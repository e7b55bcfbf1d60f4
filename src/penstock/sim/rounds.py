"""Fixed loads in simulated time: work that comes round after round, whatever arrives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractOperator
from penstock.sim.arrivals import Arrivals, Steady

# No file can have a name like this.
_MARK = "\0rounds of "


@dataclass(frozen=True, eq=False)
class Rounds:
    """A network whose fixed loads are work of operators of their own, behind all others.

    ``owners`` are the numbers of the operators that these belong to. Each gets a tuple every
    ``round_s``, which takes that long times the fixed load and leads to nothing.
    """

    network: AbstractNetwork
    owners: Ints
    round_s: float

    @property
    def arrivals(self) -> Mapping[str, Arrivals]:
        """How the rounds come."""
        names = [
            stream.name for stream in self.network.inputs[-len(self.owners) :] if len(self.owners)
        ]
        return dict.fromkeys(names, Steady(1 / self.round_s, periodic=True))

    @property
    def first_s(self) -> Floats:
        """When the first round of each comes: spread over a round, not all at once."""
        count = len(self.owners)
        return self.round_s * np.arange(1, count + 1) / max(1, count)


def with_rounds(network: AbstractNetwork, round_s: float) -> Rounds:
    """The network with its fixed loads as work; the same network where there are none.

    >>> from penstock.model.abstract import AbstractNode
    >>> busy = AbstractOperator("a", ("I",), 0.001, fixed_cpu=0.25)
    >>> network = AbstractNetwork((AbstractInput("I"),), (busy,), (AbstractNode("n"),))
    >>> found = with_rounds(network, round_s=2)
    >>> found.owners.tolist(), found.network.operators[1].cost_s
    ([0], 0.5)
    """
    busy = [
        (at, operator) for at, operator in enumerate(network.operators) if operator.fixed_cpu > 0
    ]
    if not busy:
        return Rounds(network, np.zeros(0, dtype=np.int64), round_s)
    names = [_MARK + operator.name for _, operator in busy]
    work = tuple(
        AbstractOperator(
            f"{name}.", (name,), operator.fixed_cpu * round_s, 0.0, unit=operator.group
        )
        for name, (_, operator) in zip(names, busy, strict=True)
    )
    return Rounds(
        replace(
            network,
            inputs=(*network.inputs, *(AbstractInput(name) for name in names)),
            operators=(*network.operators, *work),
        ),
        np.array([at for at, _ in busy], dtype=np.int64),
        round_s,
    )
