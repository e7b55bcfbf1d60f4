"""Why a move happened, as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.control.answer_models import MoveAnswer

_BY = {
    "people": "asked for by people",
    "balancer": "decided by the balancer",
    "failover": "made because a node fell silent",
    "return": "made because a node has come back",
    "tree": "made because an input did not pass",
    "neighbours": "agreed by neighbours",
}
_PARTS = {
    "silence_s": "until the lease ended",
    "decision_s": "until another node was chosen",
    "release_s": "until its former node had let go",
    "take_over_s": "until the checkpoint was taken over",
    "start_s": "until the query was started",
    "first_batch_s": "until the first batch was out",
}


def move_text(move: MoveAnswer) -> str:
    """Everything known about a move: who wanted it, what for, what it rests on, what it took."""
    lines = [
        f"move {move.id}: {move.unit} {move.source} → {move.target}, {move.state}",
        f"  {_BY[move.by]}" + (f": {move.reason}" if move.reason != "asked for" else ""),
    ]
    lines += [f"  failed: {move.error}"] * bool(move.error)
    numbers = move.numbers
    if "groups" in numbers:
        return "\n".join([*lines, *_group_lines(numbers), *_time_lines(move, {})])
    if move.by == "balancer":
        lines += _balance_lines(move, numbers)
    if move.by == "neighbours":
        lines += _negotiation_lines(move, numbers)
    lines += _time_lines(move, numbers.get("spent") or numbers.get("phases", {}))
    return "\n".join(lines)


def _group_lines(numbers: Mapping[str, Any]) -> list[str]:
    groups = ", ".join(map(str, numbers["groups"]))
    lines = [f"  groups {groups} of the join {numbers['join']}, to its part {numbers['part']}"]
    for name, report in numbers.get("parts", {}).items():
        lines.append(
            f"    {name}  {report['occupancy']:.0%} full, {report['busy']:.0%} busy, "
            f"{report['groups']} groups"
        )
    return lines


def _negotiation_lines(move: MoveAnswer, numbers: Mapping[str, Any]) -> list[str]:
    from penstock.cli.negotiation_text import negotiation_lines
    from penstock.control.answer_models import NegotiationAnswer

    sizes = ", ".join(f"{name} {size:.1f} %" for name, size in numbers["sizes"].items())
    lines = [
        f"  {move.source} was at {numbers['utilisation']:.1f} %, with thresholds "
        f"{numbers['lower']:g} and {numbers['upper']:g} %",
        f"  moved together: {sizes}",
    ]
    told = numbers.get("negotiated")
    if told is None:
        return [*lines, f"  negotiation {numbers['negotiation']}"]
    return lines + [f"  {line}" for line in negotiation_lines(NegotiationAnswer(**told))]


def _balance_lines(move: MoveAnswer, numbers: Mapping[str, Any]) -> list[str]:
    lines = [
        f"  policy {numbers['policy']}, score {_number(numbers['score'])}: correlation with the "
        f"rest of {move.source} {_number(numbers['source_correlation'])}, "
        f"with {move.target} {_number(numbers['target_correlation'])}",
        f"  load of {move.unit}: {_number(numbers['load'])} cores",
        "  loads of nodes, as shares of their cores",
    ]
    after = numbers["loads_after"]
    lines += [
        f"    {node}  {_number(load)} → {_number(after.get(node))}"
        for node, load in numbers["loads_before"].items()
    ]
    listed = ", ".join(f"{name} {_number(load)}" for name, load in numbers["considered"].items())
    left_out = numbers["considered_count"] - len(numbers["considered"])
    lines.append(f"  considered: {listed}" + (f" and {left_out} more" if left_out else ""))
    if numbers["moved_with_it"]:
        lines.append(f"  moved in the same plan: {', '.join(numbers['moved_with_it'])}")
    return lines


def _time_lines(move: MoveAnswer, spent: Mapping[str, float]) -> list[str]:
    lines = []
    if move.ended_s is not None:
        lines.append(f"  took {move.ended_s - move.created_s:.1f} s")
    if move.pause_s is not None:
        lines.append(f"  nobody worked on it for {move.pause_s:.2f} s")
    return lines + [f"    {took_s:6.2f} s {_PARTS[part]}" for part, took_s in spent.items()]


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
