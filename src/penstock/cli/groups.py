"""Commands in groups by what they are for, in the order in which people need them."""

from __future__ import annotations

GROUPS = {
    "Begin": ("init", "doctor", "run", "check", "schema", "explain"),
    "A system that goes on": ("up", "dashboard", "submit", "ls", "drop", "down", "context"),
    "Watch and steer": ("status", "nodes", "rows", "events", "logs", "move", "balance"),
    "Decide before running": ("plan", "simulate", "admit", "power", "transfers"),
    "Devices, experiments, measurements": ("device", "study", "bench"),
}
"""A command in no group is shown with those nobody has thought of."""


def group_of(command: str) -> str | None:
    """The heading under which help shows a command.

    >>> group_of("up"), group_of("rows")
    ('A system that goes on', 'Watch and steer')
    """
    return next((title for title, names in GROUPS.items() if command in names), None)


def position_of(command: str) -> tuple[int, int]:
    """Where help shows a command: its group, and its place there."""
    for number, names in enumerate(GROUPS.values()):
        if command in names:
            return number, names.index(command)
    return len(GROUPS), 0
