"""``penstock simulate`` on a tree of nodes: how it balances itself by negotiation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.app.words import count, counted, span
from penstock.balance.hierarchy.settings import HierarchySettings
from penstock.cli.canvas import canvas_for
from penstock.errors import UsageError
from penstock.model.tree_network import TreeNetwork
from penstock.sim.negotiating import SimulatedTransfer
from penstock.sim.tree_loads import Fluctuation
from penstock.sim.tree_run import NO_CHANGES, TreeFigures, run_tree

POLICIES = ("off", "hierarchy")


@dataclass(frozen=True)
class SimulatedTree:
    """A tree with and without negotiations, on the same loads."""

    network: TreeNetwork
    policy: str
    without: TreeFigures
    found: TreeFigures
    length_s: float
    took_s: float


def simulate_tree(
    network: TreeNetwork, policy: str, length_s: float, growth: float, seed: int
) -> SimulatedTree:
    """Lets a tree balance itself, or not, while operators grow by ``growth`` percent a step."""
    if policy not in POLICIES:
        raise UsageError(
            f"--balance {policy} does not know trees", hint="Write --balance hierarchy, or off."
        )
    first = np.array([float(operator.size) for operator in network.operators])
    loads = NO_CHANGES
    if growth and len(first):
        at_once = max(1, len(network.nodes.parents) // 15)
        changing = Fluctuation(growth, int(length_s), at_once=at_once)
        loads = changing.loads(first, np.arange(len(first)), np.random.default_rng(seed))
    began = time.perf_counter()
    without = run_tree(network, None, loads, length_s, seed=seed)
    found = without
    if policy == "hierarchy":
        found = run_tree(network, HierarchySettings(), loads, length_s, seed=seed)
    took_s = time.perf_counter() - began
    return SimulatedTree(network, policy, without, found, length_s, took_s)


def tree_record(simulated: SimulatedTree) -> dict[str, object]:
    """The stable form that ``--json`` prints."""
    found, nodes = simulated.found, list(simulated.network.nodes.parents)
    return {
        "simulated_s": simulated.length_s,
        "seconds": simulated.took_s,
        "policy": simulated.policy,
        **figures_record(found, simulated.without, simulated.length_s),
        "assignment": {
            operator.name: nodes[node]
            for operator, node in zip(simulated.network.operators, found.assignment, strict=True)
        },
    }


def figures_record(found: TreeFigures, without: TreeFigures, length_s: float) -> dict[str, object]:
    """How loaded a tree was over time, and what it came to."""
    return {
        "messages": found.messages,
        "moved": found.moved,
        "overloaded_s": _overloaded_s(found, length_s),
        "overloaded_without_s": _overloaded_s(without, length_s),
        "samples": [
            {
                "time_s": float(found.times_s[at]),
                "mean": float(found.mean[at]),
                "deviation": float(found.deviation[at]),
                "overloaded": int(found.overloaded[at]),
            }
            for at in range(len(found.times_s))
        ],
    }


def _overloaded_s(figures: TreeFigures, length_s: float) -> float:
    """For how long nodes were overloaded, added up over the nodes."""
    return float(figures.overloaded.sum() * length_s / max(1, len(figures.times_s)))


def tree_lines(simulated: SimulatedTree) -> list[str]:
    """The simulation as people read it."""
    network, found = simulated.network, simulated.found
    nodes = list(network.nodes.parents)
    lines = [
        f"{counted(len(network.operators), 'operator')} on a tree of "
        f"{counted(len(nodes), 'node')}, balancing {simulated.policy}",
        f"{span(simulated.length_s)} simulated in {span(simulated.took_s)}: "
        f"{count(found.messages)} messages, {counted(found.moved, 'operator')} moved",
        "",
        *figures_lines(simulated.policy, found, simulated.without, simulated.length_s),
    ]
    moved = [
        f"  {operator.name}: {operator.node} → {nodes[node]}"
        for operator, node in zip(network.operators, found.assignment, strict=True)
        if nodes[node] != operator.node
    ]
    if moved:
        more = [f"  and {count(len(moved) - 20)} more"] if moved[20:] else []
        lines += ["", "elsewhere at the end", *moved[:20], *more]
    return lines


def figures_lines(
    policy: str, found: TreeFigures, without: TreeFigures, length_s: float
) -> list[str]:
    """How overloaded a tree was, and how it ended."""
    is_compared = policy != "off"
    beside = f"; {span(_overloaded_s(without, length_s))} without negotiations"
    lines = [
        f"overloaded  {span(_overloaded_s(found, length_s))}, added up over the nodes"
        + (beside if is_compared else "")
    ]
    if len(found.times_s):
        lines += [
            f"mean        {found.mean.mean():.1f} %, deviation over the nodes "
            f"{found.deviation.mean():.1f}"
            + (f"; {without.deviation.mean():.1f} without negotiations" if is_compared else ""),
            f"at the end  mean {found.mean[-1]:.1f} %, deviation {found.deviation[-1]:.1f}, "
            f"{counted(int(found.overloaded[-1]), 'node')} overloaded",
        ]
    return lines


def transfer_record(transfer: SimulatedTransfer) -> dict[str, object]:
    """One agreement of neighbours that was carried out."""
    return {
        "at_s": transfer.at_s,
        "from": transfer.source,
        "to": transfer.target,
        "fragments": list(transfer.operators),
        "size": transfer.size,
    }


def transfer_lines(transfers: Sequence[SimulatedTransfer]) -> list[str]:
    """What neighbours handed to each other, the last of it."""
    if not transfers:
        return []
    number = sum(len(transfer.operators) for transfer in transfers)
    head = f"{counted(number, 'fragment')} changed hands in {counted(len(transfers), 'step')}"
    return [
        "",
        f"{head}; the last:",
        *(
            f"  {span(transfer.at_s)}: {', '.join(transfer.operators)} {transfer.source} → "
            f"{transfer.target} ({transfer.size:.1f} % of {transfer.source})"
            for transfer in transfers[-5:]
        ),
    ]


def draw_tree(policy: str, found: TreeFigures, without: TreeFigures, path: Path) -> None:
    """Draws mean, deviation and overloaded nodes over time, with and without negotiations."""
    with canvas_for(path, (7.0, 6.0), font_size=9) as canvas:
        panels = canvas.subplots(3, 1, sharex=True)
        rows = (("mean", "mean, %"), ("deviation", "deviation"), ("overloaded", "overloaded nodes"))
        for axes, (column, label) in zip(panels, rows, strict=True):
            curves = [("off", without, "#D55E00")]
            if policy != "off":
                curves.append((policy, found, "#0072B2"))
            for name, figures, colour in curves:
                values = getattr(figures, column)
                axes.plot(figures.times_s, values, color=colour, linewidth=1.2, label=name)
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.25)
        panels[-1].set_xlabel("simulated seconds")
        panels[0].legend(loc="best", frameon=False, fontsize=8)
