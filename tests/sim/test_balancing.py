"""A simulated system that balances itself."""

import numpy as np
import pytest

from penstock.balance.global_correlation import global_correlation
from penstock.balance.guards import Guards
from penstock.balance.policies import policies
from penstock.errors import InputError
from penstock.sim.arrivals import Alternating, Steady
from penstock.sim.balancing import BalancedSystem, Balancing
from penstock.sim.measuring import LoadMeter
from penstock.sim.simulation import Simulation
from sim.networks import chains


def _system(balancing: Balancing, seed: int = 1) -> BalancedSystem:
    """Two chains that burst in turn, each on a node of its own."""
    arrivals = {
        "I0": Alternating(140, ratio=3, period_s=10),
        "I1": Alternating(140, ratio=3, period_s=10, offset_s=5),
    }
    simulation = Simulation(chains(2, 2, 5), arrivals, [0] * 5 + [1] * 5, seed)
    return BalancedSystem(simulation, balancing, seed)


def test_chains_that_burst_in_turn_are_cut() -> None:
    latencies = {}
    for policy in ("off", "largest-load-first", "correlation"):
        system = _system(Balancing(policy=policy))
        system.advance(40)
        system.simulation.forget()
        system.advance(100)
        latencies[policy] = system.simulation.latencies().mean_s
    assert latencies["correlation"] < 0.5 * latencies["off"]
    assert latencies["correlation"] < 0.5 * latencies["largest-load-first"]


def test_a_plan_is_carried_out_by_hand_over_one_pair_at_a_time() -> None:
    system = _system(Balancing())
    system.advance(20)
    plan = system.apply(global_correlation)
    assert system.is_moving
    assert len(plan.batches) == 1
    before = system.simulation.now_s
    system.finish_moves()
    assert system.simulation.now_s - before == pytest.approx(0.06 + 0.08 * len(plan.moves))
    assert np.array_equal(system.simulation.assignment, plan.assignment)
    assert system.moved_load == plan.moved_load
    assert plan.after.mean_correlation > plan.before.mean_correlation


def test_suggestions_are_made_and_not_carried_out() -> None:
    system = _system(Balancing(policy="correlation", suggest=True))
    system.advance(30)
    assert system.plans
    assert system.simulation.moves == 0


def test_guards_slow_it_down() -> None:
    free, guarded = (
        _system(Balancing(policy="global-random", guards=guards))
        for guards in (Guards(), Guards(cooldown_s=1_000.0))
    )
    for system in (free, guarded):
        system.advance(40)
    assert 0 < guarded.simulation.moves <= 10
    assert free.simulation.moves > 20


def test_the_same_seed_gives_the_same_moves() -> None:
    runs = [_system(Balancing(policy="random", every_s=2.0)) for _ in range(2)]
    for system in runs:
        system.advance(60)
    first, second = ([plan.moves for plan in system.plans] for system in runs)
    assert first == second
    assert runs[0].simulation.latencies().sum_s == runs[1].simulation.latencies().sum_s


@pytest.mark.parametrize("policy", [*policies()])
def test_every_policy_runs_in_the_loop(policy: str) -> None:
    system = _system(Balancing(policy=policy))
    system.advance(25)
    assert system.simulation.latencies().count > 5_000


def test_loads_by_inputs_do_not_see_queues() -> None:
    network = chains(1, 1, 2, cost_s=0.01)
    simulation = Simulation(network, {"I0": Steady(100)}, [0, 0], 1)
    simulation.advance(10)
    statistics = simulation.statistics()
    assert LoadMeter(network, "busy").loads(statistics).sum() <= 1.01
    by_inputs = LoadMeter(network, "inputs").loads(statistics)
    assert by_inputs[0] == by_inputs[1] == pytest.approx(1.0, rel=0.15)
    with pytest.raises(InputError, match="no measure of load called guess"):
        LoadMeter(network, "guess")


def test_samples_and_decisions_have_their_own_rhythm() -> None:
    system = _system(Balancing(window_s=10, samples=20, every_s=3.0))
    system.advance(12)
    assert system.timeline.times_s.size == 24
    assert system.situation.series.samples == 20
    with pytest.raises(InputError, match=r"Give times above zero and at least one sample\."):
        Balancing(every_s=0)
