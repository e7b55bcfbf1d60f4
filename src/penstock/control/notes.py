"""What a person should know about a unit beyond its state: sentences for status and the API."""

from __future__ import annotations

from collections.abc import Collection

from penstock.control.records import UnitRecord
from penstock.control.returning import RETURNS_AT_MOST, STEADY_AFTER_S


def is_waiting_for_node(unit: UnitRecord, alive: Collection[str]) -> bool:
    """Whether nobody runs it because its node is not up."""
    is_over = unit.has_said("finished") or unit.is_dropped or unit.is_unread
    return unit.node is not None and unit.node not in alive and not is_over


def reading_notes(reads: Collection[str], failed: Collection[str]) -> list[str]:
    """What of the units that a unit reads does not run any more.

    >>> reading_notes(["sums", "rows"], failed=["sums"])
    ['waits for sums, which has failed']
    """
    return [f"waits for {name}, which has failed" for name in sorted({*reads} & {*failed})]


def place_notes(unit: UnitRecord, alive: Collection[str]) -> list[str]:
    """Why a unit is not where it should be.

    >>> place_notes(UnitRecord("q", "fragment", 1, "b", 1), alive=["a"])
    ['waits for node b, which is not up']
    >>> place_notes(UnitRecord("q", "fragment", 1, "a", 2, belongs="b"), alive=["a"])
    ['runs on a until node b has been up for 30 s']
    """
    if is_waiting_for_node(unit, alive):
        return [f"waits for node {unit.node}, which is not up"]
    if unit.belongs is None or unit.has_said("finished"):
        return []
    if unit.returns >= RETURNS_AT_MOST:
        return [
            f"runs on {unit.node}: it was brought back to {unit.belongs} {unit.returns} times, "
            "and is tried again when it has run undisturbed for ten minutes"
        ]
    return [f"runs on {unit.node} until node {unit.belongs} has been up for {STEADY_AFTER_S:g} s"]
