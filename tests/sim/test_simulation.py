"""The simulated system: repeatable, in bounded memory, with every part behaving as described."""

import hashlib
import math

import numpy as np
import pytest

from penstock.errors import InputError, RunError
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.sim.arrivals import Alternating, OnOff, Recorded, Steady, self_similar
from penstock.sim.moving import HandOverTimes
from penstock.sim.physics import Physics
from penstock.sim.simulation import Simulation, logged_events
from sim.networks import chains


def _one(operator: AbstractOperator, **more: float) -> AbstractNetwork:
    names = dict.fromkeys(operator.inputs)
    return AbstractNetwork(
        tuple(AbstractInput(name, tuple_bytes=100) for name in names),
        (operator,),
        (AbstractNode("n"),),
        **more,  # type: ignore[arg-type]
    )


def _log(seed: int, assignment: list[int]) -> bytes:
    lines: list[bytes] = []
    network = chains(3, 4, 3)
    arrivals = {
        "I0": Steady(90),
        "I1": Alternating(80, ratio=4, period_s=2),
        "I2": OnOff(70, rhythm=1),
        "I3": self_similar(60, seed=5, block_s=64),
    }
    physics = Physics(delay_s=0.002, service="exponential")
    simulation = Simulation(network, arrivals, assignment, seed, physics, log=lines.append)
    for until_s in (3.0, 3.5, 20.0):
        simulation.advance(until_s)
    return b"".join(lines)


def test_the_same_seed_gives_the_same_log_to_the_byte() -> None:
    where = [0, 1, 2] * 4
    assert _log(1, where) == _log(1, where)
    assert hashlib.sha256(_log(1, where)).digest() != hashlib.sha256(_log(2, where)).digest()


def test_events_are_in_order_and_arrivals_do_not_depend_on_the_plan() -> None:
    together, apart = (list(logged_events(_log(1, where))) for where in ([0] * 12, [0, 1, 2] * 4))
    for log in (together, apart):
        times = [time for time, _, _ in log]
        assert times == sorted(times)
    arrival = 2
    assert [one for one in together if one[1] == arrival] == [
        one for one in apart if one[1] == arrival
    ]


def test_how_time_is_cut_into_steps_changes_nothing() -> None:
    whole, steps = (_clustered() for _ in range(2))
    whole.advance(30)
    for until_s in np.linspace(0.1, 30, 77):
        steps.advance(float(until_s))
    assert whole.latencies().sum_s == steps.latencies().sum_s
    assert whole.events == steps.events


def _clustered() -> Simulation:
    network = chains(2, 2, 3)
    return Simulation(network, {"I0": Steady(100), "I1": Steady(200)}, [0, 1, 0, 1, 0, 1], seed=4)


def test_memory_does_not_grow_with_simulated_time() -> None:
    simulation = _clustered()
    simulation.advance(20)
    before = simulation.memory_bytes
    simulation.advance(2_000)
    assert simulation.memory_bytes == before
    assert simulation.events > 2_000_000


def test_nothing_is_lost() -> None:
    simulation = _clustered()
    simulation.advance(50)
    arrived = simulation.statistics().input_rates.sum() * 50
    simulation.drain()
    assert simulation.latencies().count == round(arrived)
    assert simulation.waiting == 0


@pytest.mark.parametrize("passed", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("selectivity", ["random", "expected"])
def test_selectivity_by_chance_or_exact(selectivity: str, passed: float) -> None:
    network = _one(AbstractOperator("o", ("I",), 1e-5, passed))
    simulation = Simulation(
        network, {"I": Steady(1_000, periodic=True)}, [0], 1, Physics(selectivity=selectivity)
    )
    simulation.advance(20)
    simulation.drain()
    slack = 2 if selectivity == "expected" else 4 * math.sqrt(20_000)
    assert simulation.latencies().count == pytest.approx(20_000 * passed, abs=slack)


def test_a_faster_node_needs_less_time() -> None:
    network = AbstractNetwork(
        (AbstractInput("I"),),
        (AbstractOperator("o", ("I",), 0.01),),
        (AbstractNode("slow"), AbstractNode("fast", cpu=4.0)),
    )
    for node, took_s in ((0, 0.01), (1, 0.0025)):
        simulation = Simulation(network, {"I": Steady(1, periodic=True)}, [node], 1)
        simulation.advance(10.5)
        assert simulation.latencies().mean_s == pytest.approx(took_s)


def test_a_join_works_on_all_pairs_within_its_window() -> None:
    operator = AbstractOperator("j", ("A", "B"), 1e-5, 0.1, kind="join", window_s=2.0)
    simulation = Simulation(_one(operator), {"A": Steady(50), "B": Steady(40)}, [0], seed=2)
    simulation.advance(10)
    simulation.forget()
    simulation.statistics()
    simulation.advance(410)
    pairs_per_s = 2.0 * 50 * 40
    found = simulation.statistics()
    assert found.busy[0] == pytest.approx(pairs_per_s * 1e-5, rel=0.05)
    assert simulation.latencies().count / 400 == pytest.approx(0.1 * pairs_per_s, rel=0.05)
    assert simulation.waiting < 3 * (50 + 40)


def test_a_window_sends_on_once_it_is_over() -> None:
    network = _one(AbstractOperator("a", ("I",), 1e-6, 0.1))
    simulation = Simulation(
        network,
        {"I": Steady(10, periodic=True)},
        [0],
        1,
        Physics(selectivity="expected", windows_s={"a": 1.0}),
    )
    simulation.advance(20.05)
    # One of ten tuples of every window, as old as the window's last tuple.
    assert simulation.latencies().count == pytest.approx(19, abs=1)
    assert simulation.latencies().mean_s == pytest.approx(0.1, rel=0.02)


def test_the_network_delays_and_its_links_are_limited() -> None:
    network = AbstractNetwork(
        (AbstractInput("I", tuple_bytes=100),),
        (AbstractOperator("a", ("I",), 0.001), AbstractOperator("b", ("a",), 0.001)),
        (AbstractNode("n", bandwidth_per_s=10_000.0), AbstractNode("m")),
    )
    found = {}
    for where in ([0, 0], [0, 1]):
        simulation = Simulation(
            network, {"I": Steady(10, periodic=True)}, where, 1, Physics(delay_s=0.005)
        )
        simulation.advance(10.05)
        found[where[1]] = simulation.latencies().mean_s
    assert found[0] == pytest.approx(0.002)
    assert found[1] == pytest.approx(0.002 + 0.005 + 100 / 10_000)


def test_moving_tuples_between_nodes_costs_half_at_either_end() -> None:
    network = AbstractNetwork(
        (AbstractInput("I"),),
        (AbstractOperator("a", ("I",), 0.001), AbstractOperator("b", ("a",), 0.001)),
        (AbstractNode("n"), AbstractNode("m")),
        transfer_cost_s=0.004,
    )
    simulation = Simulation(network, {"I": Steady(10, periodic=True)}, [0, 1], 1)
    simulation.advance(10.05)
    assert simulation.latencies().mean_s == pytest.approx(0.002 + 0.004)
    assert simulation.statistics().utilisation == pytest.approx([0.03, 0.03], rel=0.02)


@pytest.mark.parametrize("discipline", ["fcfs", "round-robin"])
def test_inputs_of_a_moving_operator_queue_up_and_none_is_lost(discipline: str) -> None:
    simulation = Simulation(
        chains(2, 2, 2),
        {"I0": Steady(200), "I1": Steady(200)},
        [0, 0, 0, 0],
        seed=1,
        physics=Physics(discipline=discipline),
    )
    simulation.advance(10)
    took_s = simulation.suspend([1, 3])
    assert took_s == pytest.approx(0.06 + 2 * 0.08)
    simulation.advance(10 + took_s)
    assert simulation.waiting > 60
    for operator in (1, 3):
        simulation.resume(operator, 1)
    assert simulation.assignment.tolist() == [0, 1, 0, 1]
    arrived = simulation.statistics().input_rates.sum() * (10 + took_s)
    simulation.drain()
    assert simulation.latencies().count == round(arrived)
    assert 0.2 < simulation.latencies().longest_s < 0.5
    assert simulation.moves == 2


def test_state_makes_a_hand_over_longer() -> None:
    operator = AbstractOperator("j", ("A", "B"), 1e-6, 0.1, kind="join", window_s=100.0)
    network = _one(operator)
    physics = Physics(hand_over=HandOverTimes(base_s=0.1, operator_s=0.0, state_s=0.001))
    simulation = Simulation(network, {"A": Steady(50), "B": Steady(40)}, [0], 2, physics)
    simulation.advance(20)
    assert simulation.suspend([0]) == pytest.approx(0.1 + 0.001 * 20 * 90, rel=0.1)


def test_round_robin_is_fair_to_a_light_operator_beside_a_heavy_one() -> None:
    network = chains(1, 2, 1)
    arrivals = {"I0": Recorded.of(np.full(1_000, 1.0)), "I1": Recorded.of(np.array([1.0001]))}
    waited = {}
    for discipline in ("fcfs", "round-robin"):
        simulation = Simulation(network, arrivals, [0, 0], 1, Physics(discipline=discipline))
        simulation.advance(10)
        waited[discipline] = simulation.sink_latencies()["o1_0"][1]
    assert waited["fcfs"] == pytest.approx(1.0, rel=0.01)
    assert waited["round-robin"] < 0.01


def test_overload_is_told_before_memory_ends() -> None:
    network = chains(2, 1, 1, cost_s=0.01)
    simulation = Simulation(network, {"I0": Steady(1_000)}, [1], 1, most_waiting=10_000)
    with pytest.raises(RunError) as error:
        simulation.advance(1_000)
    assert "most of them for node n1. The nodes cannot keep up" in str(error.value)


def test_what_does_not_fit_together_is_refused() -> None:
    network = chains(2, 1, 2)
    with pytest.raises(InputError, match=r"arrivals are given for none; the inputs are I0"):
        Simulation(network, {}, [0, 0], 1)
    with pytest.raises(InputError, match=r"Give a node from 0 to 1 for each of the 2 operators"):
        Simulation(network, {"I0": Steady(1)}, [0, 2], 1)
    with pytest.raises(InputError, match=r"no discipline called lifo. There are fcfs, round-robin"):
        Physics(discipline="lifo")
