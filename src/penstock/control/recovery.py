"""What the time goes into until a unit works again: after a move, and after its node died."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.control.records import UnitRecord

_WORDS = {
    "silence_s": "silence",
    "decision_s": "decision",
    "take_over_s": "checkpoint taken over",
    "start_s": "query started",
    "first_batch_s": "first batch",
}


def pause_s(unit: UnitRecord, reached_s: Mapping[str, float], lease_s: float) -> float | None:
    """For how long nobody worked on a unit that has a new owner; None if it is not known.

    After a failure that is since the last sign of life of the former owner: one lease before its
    lease ended. Of an owner that had it running before, and lost its lease, it is not known.
    """
    until_s = max(reached_s.values(), default=None)
    if until_s is None or unit.is_up:
        return None
    if unit.lost_s is not None:
        return round(max(0.0, until_s - unit.lost_s + lease_s), 3)
    has_come = unit.previous not in (None, unit.node)
    if not has_come or unit.released_s is None or unit.released_epoch != unit.epoch - 1:
        return None
    return round(max(0.0, until_s - unit.released_s), 3)


def time_spent(
    unit: UnitRecord, reached_s: Mapping[str, float], lease_s: float
) -> dict[str, float]:
    """The parts of a recovery; nothing if the unit did not lose its node.

    >>> lost = UnitRecord("q", "fragment", 1, "b", 2, lost_s=105.0, assigned_s=105.2)
    >>> time_spent(lost, {"taken_over_s": 105.5, "started_s": 106.0, "first_batch_s": 106.4}, 5.0)
    {'silence_s': 5.0, 'decision_s': 0.2, 'take_over_s': 0.3, 'start_s': 0.5, 'first_batch_s': 0.4}
    """
    if unit.lost_s is None or unit.assigned_s is None:
        return {}
    waited = {"silence_s": _took(lease_s), "decision_s": _took(unit.assigned_s - unit.lost_s)}
    return waited | _steps(unit.assigned_s, reached_s)


def hand_over_phases(unit: UnitRecord, reached_s: Mapping[str, float]) -> dict[str, float]:
    """What a move from one living node to another took, part by part; nothing if it was none.

    >>> moved = UnitRecord("q", "fragment", 1, "b", 2, "a", 1, assigned_s=10.0, released_s=10.3)
    >>> hand_over_phases(moved, {"taken_over_s": 10.5, "started_s": 10.6, "first_batch_s": 11.0})
    {'release_s': 0.3, 'take_over_s': 0.2, 'start_s': 0.1, 'first_batch_s': 0.4}
    """
    if unit.lost_s is not None or unit.assigned_s is None or unit.released_s is None:
        return {}
    return {"release_s": _took(unit.released_s - unit.assigned_s)} | _steps(
        unit.released_s, reached_s
    )


def _steps(at_s: float, reached_s: Mapping[str, float]) -> dict[str, float]:
    """How long each step took that a unit has reached since ``at_s``."""
    spent = {}
    steps = (("take_over_s", "taken_over_s"), ("start_s", "started_s"), ("first_batch_s",) * 2)
    for part, reached in steps:
        if reached in reached_s:
            spent[part], at_s = _took(reached_s[reached] - at_s), reached_s[reached]
    return spent


def _took(seconds: float) -> float:
    return round(max(0.0, seconds), 3)


def recovery_text(node: str, pause_s: float, spent: Mapping[str, float]) -> str:
    """A recovery in a line.

    >>> recovery_text("b", 5.5, {"silence_s": 5.0, "decision_s": 0.1, "start_s": 0.4})
    'works on b after 5.5 s: silence 5.0 s, decision 0.1 s, query started 0.4 s'
    """
    parts = ", ".join(f"{_WORDS[part]} {took_s:.1f} s" for part, took_s in spent.items())
    return f"works on {node} after {pause_s:.1f} s: {parts}"
