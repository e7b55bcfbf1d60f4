"""Uses every compiled loop once, so that whoever plans or simulates first need not wait for it."""

from __future__ import annotations

import sys
import time

import numpy as np

from penstock.balance.policies import POLICIES, decide
from penstock.balance.situation import HOMELESS, Situation
from penstock.load.correlation import mean_pair_correlation
from penstock.load.problem import placement_problem
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.place.registry import strategies
from penstock.sim.arrivals import Alternating, Arrivals, Steady
from penstock.sim.balancing import BalancedSystem, Balancing
from penstock.sim.simulation import Simulation

_NETWORK = AbstractNetwork(
    (AbstractInput("I1", 20.0), AbstractInput("I2", 20.0)),
    (
        *(AbstractOperator(f"a{at}", (f"a{at - 1}" if at else "I1",), 0.01) for at in range(3)),
        *(AbstractOperator(f"b{at}", (f"b{at - 1}" if at else "I2",), 0.01) for at in range(3)),
    ),
    (AbstractNode("n1"), AbstractNode("n2")),
    transfer_cost_s=0.001,
)


def use_every_loop() -> None:
    """Every strategy, every policy and the simulator, on next to nothing."""
    rng = np.random.default_rng(0)
    problem = placement_problem(_NETWORK)
    for strategy in strategies().values():
        strategy().place(problem, rng)
    nodes = [0, 0, 0, 0, 0, HOMELESS, 1, 1]
    loads = rng.uniform(0.1, 0.4, (len(nodes), 6))
    mean_pair_correlation(loads)
    situation = Situation.of(loads, nodes, [1.0, 1.0, 1.0])
    for policy in POLICIES:
        decide(policy, situation, rng)
    _simulate({"I1": Steady(20.0), "I2": Alternating(20.0, period_s=1.0)})


def _simulate(arrivals: dict[str, Arrivals]) -> None:
    simulation = Simulation(_NETWORK, arrivals, np.array([0, 0, 0, 0, 1, 1], dtype=np.int64), 0)
    balancing = Balancing("correlation", every_s=1.0, window_s=1.0, samples=4)
    BalancedSystem(simulation, balancing, 0).advance(5.0)


def main() -> int:
    """Compile what is not compiled yet, for the Makefile."""
    started = time.monotonic()
    use_every_loop()
    print(f"Loops compiled ({time.monotonic() - started:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
