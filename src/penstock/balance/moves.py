"""The moves of a plan by name, with the numbers that the decision rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from penstock.model.moves import Move

if TYPE_CHECKING:
    from penstock.balance.plan import MovePlan, PlannedMove

_CONSIDERED_AT_MOST = 50


def moves_of(plan: MovePlan, names: Sequence[str], nodes: Sequence[str]) -> list[Move]:
    """The moves of a plan; whoever has no node is left to who gives out nodes."""
    return [
        Move(
            names[planned.operator],
            nodes[planned.target],
            reason_text(planned, nodes),
            reasons(plan, planned, names, nodes),
        )
        for planned in plan.moves
        if planned.source >= 0
    ]


def reason_text(move: PlannedMove, nodes: Sequence[str]) -> str:
    """Why something is moved, for people."""
    source, target = nodes[move.source], nodes[move.target]
    return (
        f"correlation with the rest of {source} {move.source_correlation:.2f}, "
        f"with {target} {move.target_correlation:.2f}; "
        f"node {source} {move.source_before:.2f} → {move.source_after:.2f}, "
        f"{target} {move.target_before:.2f} → {move.target_after:.2f}"
    )


def reasons(
    plan: MovePlan, move: PlannedMove, names: Sequence[str], nodes: Sequence[str]
) -> dict[str, object]:
    """What one move of a plan rests on, with names instead of numbers.

    Loads of nodes are shares of their capacity, before and after the whole plan; loads of
    fragments are in cores. Considered were those that the policy was free to move, the busiest
    first.
    """
    before = plan.situation
    after = replace(before, assignment=plan.assignment)
    free = [k for k in range(len(names)) if before.free[k]]
    free.sort(key=lambda k: -before.series.means[k])
    return {
        "by": "balancer",
        "policy": plan.policy,
        **{
            key: _rounded(getattr(move, key))
            for key in ("load", "score", "source_correlation", "target_correlation")
        },
        "loads_before": _named(nodes, before.node_loads),
        "loads_after": _named(nodes, after.node_loads),
        "considered": {
            names[k]: _rounded(before.series.means[k]) for k in free[:_CONSIDERED_AT_MOST]
        },
        "considered_count": len(free),
        "moved_with_it": [names[other.operator] for other in plan.moves if other is not move],
    }


def _named(names: Sequence[str], loads: Iterable[float]) -> dict[str, float | None]:
    return {name: _rounded(load) for name, load in zip(names, loads, strict=True)}


def _rounded(number: float) -> float | None:
    """Four digits, and nothing that JSON has no word for."""
    return round(float(number), 4) if isfinite(number) else None
