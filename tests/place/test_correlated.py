"""Placement by correlation from random rates."""

import numpy as np

from penstock.load.problem import placement_problem
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.place.correlated import GlobalCorrelation


def _network(pinned: str = "") -> AbstractNetwork:
    return AbstractNetwork(
        tuple(AbstractInput(f"I{i}", rate_per_s=10.0) for i in range(3)),
        tuple(
            AbstractOperator(f"o{i}{k}", (f"I{i}",), 0.005, node=pinned if i == k == 0 else "")
            for i in range(3)
            for k in range(4)
        ),
        (AbstractNode("n0"), AbstractNode("n1")),
    )


def test_operators_of_one_input_are_spread_evenly() -> None:
    where = GlobalCorrelation().place(placement_problem(_network()), np.random.default_rng(1))
    for one in range(3):
        assert where[4 * one : 4 * one + 4].sum() == 2


def test_pinned_operators_stay() -> None:
    problem = placement_problem(_network(pinned="n1"))
    for seed in range(5):
        assert GlobalCorrelation().place(problem, np.random.default_rng(seed))[0] == 1
