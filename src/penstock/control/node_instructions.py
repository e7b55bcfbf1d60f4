"""What a node wants done; who carries it out answers with an event of the same number.

Instructions may be carried out late, and in any order: what has to come first is answered before
the next is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.control.records import MoveRecord, UnitRecord, UnitState
from penstock.model.measurements import FragmentStatus


@dataclass(frozen=True)
class JoinSystem:
    """Take the node's place, as a new life, unless another process holds its lease."""

    number: int


@dataclass(frozen=True)
class RenewLease:
    """Prolong the lease of this life."""

    number: int
    life: str


@dataclass(frozen=True)
class GiveBackLease:
    """End the lease of this life: everything has stopped."""

    number: int
    life: str


@dataclass(frozen=True)
class ReadCatalog:
    """Read the catalog, unless it is still in the state that is ``known``."""

    number: int
    known: int | None = None
    needs_room: bool = False


@dataclass(frozen=True)
class CheckUnits:
    """Find out how these units are, by name with their epochs."""

    number: int
    units: Mapping[str, int]


@dataclass(frozen=True)
class TakeSample:
    """Write down what was measured."""

    number: int


@dataclass(frozen=True)
class StartUnit:
    """Start a unit as its owner, if :meth:`NodeState.holds` still says so when its turn comes."""

    number: int
    unit: UnitRecord
    life: str


@dataclass(frozen=True)
class StopUnit:
    """Stop a unit; with patience what is under way is finished first."""

    number: int
    unit: str
    epoch: int
    patience_s: float = 0.0


@dataclass(frozen=True)
class PrepareMove:
    """Get ready to start a unit that is about to come here."""

    number: int
    move: MoveRecord
    unit: UnitRecord


@dataclass(frozen=True)
class CancelPreparation:
    """Let go of what was got ready in vain."""

    number: int
    unit: str


@dataclass(frozen=True)
class ReportUnit:
    """Say in the catalog how a unit is, as its owner with this epoch."""

    number: int
    unit: str
    epoch: int
    state: UnitState
    error: str = ""
    measured: FragmentStatus | None = None


@dataclass(frozen=True)
class ReleaseUnit:
    """Say in the catalog that the owner with this epoch has stopped, if this life still counts."""

    number: int
    unit: str
    epoch: int
    life: str


@dataclass(frozen=True)
class TellMove:
    """Say in the catalog that this node is ready for a move, or why the move cannot be."""

    number: int
    move: int
    error: str = ""


@dataclass(frozen=True)
class LogWarning:
    """Write a warning into the log; not answered."""

    number: int
    text: str


Telling = ReportUnit | ReleaseUnit | TellMove
NodeInstruction = (
    JoinSystem
    | RenewLease
    | GiveBackLease
    | ReadCatalog
    | CheckUnits
    | TakeSample
    | StartUnit
    | StopUnit
    | PrepareMove
    | CancelPreparation
    | Telling
    | LogWarning
)
