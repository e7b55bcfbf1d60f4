"""Records as a catalog might hold them, for tests of what is made from them."""

from __future__ import annotations

from typing import Any

from penstock.control.decisions import Assign, Forgive, Instruction, Reroute
from penstock.control.records import MoveRecord, NodeRecord, Submission, UnitRecord
from penstock.control.returning import BringBack

NOW_S = 1_000.0

AMI = """
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3
"""


def node(name: str, cores: int = 1, *, is_alive: bool = True, **told: Any) -> NodeRecord:
    """A node with or without a lease at ``NOW_S``."""
    until_s = NOW_S + 5 if is_alive else NOW_S - 1
    told = {"incarnation": f"{name}-1", "lease_until_s": until_s, **told}
    return NodeRecord(name, cores, 1 << 30, **told)


def dead(name: str) -> NodeRecord:
    """A node whose lease has run out."""
    return node(name, is_alive=False)


def unit(
    name: str = "q", on: str | None = None, epoch: int | None = None, **told: Any
) -> UnitRecord:
    """A unit that its owner, if it has one, has not said anything about yet."""
    epoch = epoch if epoch is not None else int(on is not None)
    told = {"released_epoch": max(0, epoch - 1), **told}
    return UnitRecord(name, "fragment", 1, on, epoch, **told)


def running(name: str, on: str, epoch: int = 1, **told: Any) -> UnitRecord:
    """A unit whose owner says that it runs, unless it is told to say something else."""
    return unit(name, on, epoch, **{"state": "running", "reported_epoch": epoch, **told})


def failed(name: str, on: str, epoch: int = 1, **told: Any) -> UnitRecord:
    """A unit that has failed and stopped."""
    said = {"state": "failed", "error": "no room", "released_epoch": epoch, **told}
    return running(name, on, epoch, **said)


def move(unit: str = "q", state: str = "preparing", **told: Any) -> MoveRecord:
    """A move from a to b, begun a second ago."""
    told = {"source": "a", "target": "b", "is_warm": False, "created_s": NOW_S - 1, **told}
    return MoveRecord(id=1, unit=unit, state=state, **told)  # type: ignore[arg-type]


def submission(
    name: str = "ami", text: str = AMI, number: int = 1, folder: str = "."
) -> Submission:
    """A deployment, or a query if it reads like one."""
    kind = "sql" if text.startswith("SELECT") else "yaml"
    return Submission(number, name, kind, text, folder)


def told(instruction: Instruction) -> str:
    """An instruction in a line."""
    match instruction:
        case Forgive(unit):
            return f"{unit.name} has been well"
        case Assign(unit, node, reason, is_restart):
            return f"{unit.name} {'again on' if is_restart else 'to'} {node}: {reason}"
        case Reroute(unit, node, reason):
            return f"{unit.name} up to {node}: {reason}"
        case BringBack(unit, node, reason):
            return f"{unit.name} back to {node}: {reason}"
        case _:
            why = f": {instruction.error}" if instruction.error else ""
            return f"move of {instruction.move.unit} {instruction.state}{why}"
