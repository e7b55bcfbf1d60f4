"""Fixed loads in simulated time."""

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.sim.arrivals import Steady
from penstock.sim.balancing import BalancedSystem, Balancing
from penstock.sim.measuring import MEASURES, LoadMeter
from penstock.sim.physics import Physics
from penstock.sim.rounds import with_rounds
from penstock.sim.simulation import Simulation


def network(fixed: tuple[float, ...], cost_s: float = 0.001, nodes: int = 2) -> AbstractNetwork:
    return AbstractNetwork(
        (AbstractInput("I"),),
        tuple(
            AbstractOperator(f"o{at}", ("I",), cost_s, fixed_cpu=one)
            for at, one in enumerate(fixed)
        ),
        tuple(AbstractNode(f"n{at}", cpu=1.0 + at) for at in range(nodes)),
    )


def run(written: AbstractNetwork, where: list[int], until_s: float = 200.0) -> Simulation:
    simulation = Simulation(written, {"I": Steady(100, periodic=True)}, where, 1)
    simulation.advance(until_s)
    return simulation


def test_nodes_are_busy_with_rows_and_with_fixed_loads() -> None:
    found = run(network((0.2, 0.0, 0.3)), [0, 0, 1]).statistics()
    assert found.utilisation == pytest.approx([0.1 + 0.1 + 0.2, (0.1 + 0.3) / 2], abs=0.005)
    assert found.busy == pytest.approx([0.3, 0.1, 0.4], abs=0.005)
    assert found.input_rates == pytest.approx([100], rel=0.01)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_balancer_is_told_of_fixed_loads(measure: str) -> None:
    written = network((0.2, 0.0, 0.3))
    meter = LoadMeter(written, measure)
    loads = meter.loads(run(written, [0, 0, 1]).statistics())
    assert loads == pytest.approx([0.3, 0.1, 0.4], abs=0.005)


def test_results_are_those_of_rows_and_wait_for_rounds() -> None:
    quiet, busy = run(network((0.0,), nodes=1), [0]), run(network((0.5,), nodes=1), [0])
    assert busy.latencies().count == pytest.approx(quiet.latencies().count, abs=60)
    assert busy.latencies().mean_s > 10 * quiet.latencies().mean_s
    assert busy.sink_latencies().keys() == {"o0"}


def test_rounds_move_with_their_operator() -> None:
    simulation = run(network((0.4, 0.0)), [0, 0], 50.0)
    simulation.suspend([0])
    simulation.resume(0, 1)
    simulation.statistics()
    simulation.advance(150.0)
    assert simulation.assignment.tolist() == [1, 0]
    assert simulation.moves == 1
    assert simulation.statistics().utilisation == pytest.approx([0.1, 0.25], abs=0.01)


def test_fixed_loads_alone_are_balanced() -> None:
    """Two operators that cost nothing a row fill a node; one of them goes."""
    written = network((0.45, 0.45), cost_s=1e-6, nodes=1)
    written = AbstractNetwork(
        written.inputs, written.operators, (AbstractNode("a"), AbstractNode("b"))
    )
    simulation = Simulation(written, {"I": Steady(10)}, [0, 0], 1)
    BalancedSystem(simulation, Balancing(policy="correlation", every_s=5.0), seed=1).advance(60)
    assert sorted(simulation.assignment.tolist()) == [0, 1]


def test_without_fixed_loads_nothing_is_added() -> None:
    written = network((0.0, 0.0))
    assert with_rounds(written, 1.0).network is written


def test_arrivals_are_the_same_with_and_without_fixed_loads() -> None:
    rates = [
        [run(network(fixed), [0, 0, 1], until_s).statistics().input_rates[0] for until_s in (7, 9)]
        for fixed in ((0.0, 0.0, 0.0), (0.2, 0.0, 0.1))
    ]
    assert rates[0] == rates[1]


def test_drained_rounds_end_too() -> None:
    simulation = run(network((0.2,), nodes=1), [0], 20.0)
    simulation.drain()
    assert simulation.waiting == 0


def test_rates_are_scaled_and_rounds_are_not() -> None:
    simulation = run(network((0.3,), nodes=1), [0], 20.0)
    simulation.scale(2.0)
    simulation.statistics()
    simulation.advance(220.0)
    assert simulation.statistics().utilisation == pytest.approx(np.array([0.5]), abs=0.01)


def test_rounds_take_time() -> None:
    with pytest.raises(InputError) as raised:
        Physics(round_s=0.0)
    assert str(raised.value) == "rounds of 0 s. Give more than zero."
