"""Uses every compiled loop once, so that whoever plans or simulates first need not wait for it."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.balance.deciding import decide
from penstock.balance.hierarchy.settings import HierarchySettings
from penstock.balance.policies import policies
from penstock.balance.situation import HOMELESS, Situation
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.exact_sum import merge_sums, sum_values
from penstock.kernels.member_state import open_state
from penstock.kernels.partials import compute_partials
from penstock.kernels.segments import Segments
from penstock.kernels.window_join import JoinOffset, JoinSide, JoinTerms, SideOffset, join_batch
from penstock.kernels.window_join.memory_batches import MemoryBatches
from penstock.kernels.window_plan import WindowPlan, plan_windows
from penstock.kernels.window_state import MemberTime, MemberWindows
from penstock.lang.deployment import parse_deployment
from penstock.load.correlation import mean_pair_correlation
from penstock.load.problem import placement_problem
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.model.devices import ORGANISATIONS, Broadcast, DeviceProfile
from penstock.model.node_tree import NodeTree
from penstock.model.tree_network import TreeInput, TreeNetwork, TreeOperator
from penstock.model.windows import TimeBound
from penstock.place.fuse import fuse
from penstock.place.registry import strategies
from penstock.power.cuts import cut_table
from penstock.power.plan import compare
from penstock.power.problem import ChainOperator, ChainQuery, ChainSource, PowerProblem
from penstock.sim.arrivals import Alternating, Arrivals, Steady
from penstock.sim.balancing import BalancedSystem, Balancing
from penstock.sim.fcfs_queue import times_in_queue_s
from penstock.sim.join_cluster.arriving import draw_arrivals
from penstock.sim.join_cluster.cluster import JoinCluster
from penstock.sim.join_cluster.settings import JoinClusterSettings, JoinWorkload
from penstock.sim.simulation import Simulation
from penstock.sim.tree_run import run_tree

_NETWORK = AbstractNetwork(
    (AbstractInput("I1", 20.0), AbstractInput("I2", 20.0)),
    (
        *(AbstractOperator(f"a{at}", (f"a{at - 1}" if at else "I1",), 0.01) for at in range(3)),
        *(AbstractOperator(f"b{at}", (f"b{at - 1}" if at else "I2",), 0.01) for at in range(3)),
    ),
    (AbstractNode("n1"), AbstractNode("n2")),
    transfer_cost_s=0.001,
)

_CHAINS = PowerProblem(
    Broadcast("sorted", 1.0),
    (ChainSource("s1", 1.0, 1.0),),
    (DeviceProfile("d1", 1.0, 1.0, 1.0),),
    tuple(ChainQuery(f"q{at}", "s1", ("d1",), (ChainOperator(1.0, 2.0),)) for at in range(2)),
)

_TREE = TreeNetwork(
    NodeTree({"root": None, "a": "root"}),
    (TreeInput("m", "a"),),
    tuple(TreeOperator(f"o{at}", ("m",), 10.0, "root") for at in range(8)),
)

_SESSIONS = """
streams:
  s:
    source: {directory: ., format: csv}
    schema: ts timestamp, k string
    event_time: ts
    lateness: 0s
queries:
  q: "SELECT k, count(*) AS n FROM s GROUP BY k, session_window(ts, '1 second')"
"""


def use_every_loop() -> None:
    """Every strategy, policy and cut, sums, joins and the simulator, on next to nothing."""
    rng = np.random.default_rng(0)
    problem = placement_problem(_NETWORK)
    for strategy in strategies().values():
        strategy().place(problem, rng)
    nodes = [0, 0, 0, 0, 0, HOMELESS, 1, 1]
    loads = rng.uniform(0.1, 0.4, (len(nodes), 6))
    mean_pair_correlation(loads)
    situation = Situation.of(loads, nodes, [1.0, 1.0, 1.0])
    for policy in policies():
        decide(policy, situation, rng)
    for organisation in ORGANISATIONS:
        compare(cut_table(replace(_CHAINS, broadcast=Broadcast(organisation, 1.0))))
    times_in_queue_s(np.array([0.0, 0.5]), np.ones(2))
    _sum()
    _join_sessions()
    for key in (pa.array([1, 2]), pa.array(["a", "b"]), pa.array(["a"] * 2, pa.large_string())):
        _join(key)
    _join_on_a_cluster()
    _simulate({"I1": Steady(20.0), "I2": Alternating(20.0, period_s=1.0)})
    run_tree(_TREE, HierarchySettings(), length_s=12.0)


def _sum() -> None:
    sums = sum_values(np.ones(2), np.ones(2, np.bool_), Segments.whole(2))
    merge_sums(sums, Segments.whole(1))


def _join_sessions() -> None:
    """Rows of a session come, more of it come, and it ends."""
    network = parse_deployment(_SESSIONS, "sessions.yaml", Path()).network
    plan = plan_windows(fuse(network)[0])
    assert isinstance(plan, WindowPlan)
    times = pa.array([0, 1], pa.timestamp("us", "UTC"))
    batch = BatchRows(pa.table({"ts": times, "k": ["a", "a"]}), plan.schema)
    for shape, partials in compute_partials(batch, {0: plan}).items():
        state = open_state(shape)
        for _ in range(2):
            state.add(partials)
        state.close(MemberWindows.of({0: MemberTime(plan.window, 0, 10_000_000)}, 1))


def _join(keys: pa.Array) -> None:
    """Two batches a side, with rows out of order, so that runs are sorted, probed and merged."""
    at = pa.timestamp("us", "UTC")
    rows = [pa.table({f"{side}_ts": pa.array([1, 0], at), f"{side}_k": keys}) for side in "lr"]
    left, right = (MemoryBatches(side, [rows["lr".index(side)]] * 8, f"{side}_ts") for side in "lr")
    terms = JoinTerms(
        JoinSide(rows[0].schema, ("l_k",), "l_ts"),
        JoinSide(rows[1].schema, ("r_k",), "r_ts"),
        TimeBound(0, 1),
        groups=1 if keys.type == pa.large_string() else 2,
    )
    halfway = JoinOffset(SideOffset(0, 8), SideOffset(0, 7))
    list(join_batch(terms, left, right, JoinOffset(), halfway))
    list(join_batch(terms, left, right, halfway, JoinOffset(halfway.left, SideOffset(0, 8))))


def _join_on_a_cluster() -> None:
    workload = JoinWorkload(rate_per_s=20.0, window_s=4.0, largest_key=10, groups=4)
    logs = draw_arrivals(workload, 8.0, 0)
    JoinCluster(workload, JoinClusterSettings(workers=2), logs, 8.0).run(0.0)


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
