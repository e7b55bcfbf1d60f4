"""Two chains on two nodes that burst in turn: connected against cut (the source's example 1)."""

from __future__ import annotations

from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.sim.arrivals import Alternating
from penstock.sim.simulation import Simulation
from penstock.studies.balancing_runs import SEEDS, at_every_level, drained, latency_figure
from penstock.studies.placement_runs import mean_by
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    records,
    within,
)
from penstock.studies.running import one_by_one

PLANS = {"connected": (0, 0, 1, 1), "cut": (0, 1, 1, 0)}
_LEVELS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.9)
_TABLE = "two-chains"


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Latency of the two plans at growing load."""
    levels = (0.6, 0.8) if quick else _LEVELS
    seeds = 2 if quick else SEEDS
    table = records(_TABLE, run(measure, at_every_level(PLANS, levels, seeds), say))
    setup = (
        f"2 chains of 2 equal operators on 2 nodes, {seeds} seeds; rates high for 5 s and half "
        "that for 5 s, in turn; 500 s measured."
    )
    figure = latency_figure(_TABLE, "plan", "Two chains that burst in turn", "mean load")
    return StudyReport(_TABLE, tuple(_rows(table, levels)), (table,), (figure,), setup)


def measure(point: tuple[str, float, int]) -> dict[str, Value]:
    """One plan at one load level."""
    plan, level, seed = point
    network = AbstractNetwork(
        (AbstractInput("I0"), AbstractInput("I1")),
        tuple(
            AbstractOperator(f"o{c}{k}", (f"o{c}{k - 1}" if k else f"I{c}",), 0.001)
            for c in range(2)
            for k in range(2)
        ),
        (AbstractNode("n0"), AbstractNode("n1")),
    )
    rate = level * 1_000 / 2
    arrivals = {
        f"I{c}": Alternating(rate, ratio=2.0, period_s=10.0, offset_s=5.0 * c) for c in range(2)
    }
    simulation = Simulation(network, arrivals, PLANS[plan], seed)
    simulation.advance(500)
    return {"plan": plan, "level": level, "seed": seed, **drained(simulation)}


def _rows(table: ResultTable, levels: tuple[float, ...]) -> list[Row]:
    rows = []
    for level in levels:
        cut, connected = (
            mean_by(table, "latency_ratio", plan=plan, level=level) for plan in ("cut", "connected")
        )
        rows.append(
            within(f"the cut plan's latency over the connected plan's at {level:g}", None,
                   cut / connected, high=1.0)
        )  # fmt: skip
    return rows
