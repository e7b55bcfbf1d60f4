"""What a node learns: what came of its instructions, that time passes, that it is to leave.

An event that answers an instruction carries its number. Every instruction is answered at most once
as far as :class:`~penstock.control.node_state.NodeState` is concerned: what comes again, or after
the node has stopped waiting for it, is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.model.measurements import FragmentStatus

Trouble = Literal["error", "no room", "refused"]
"""What kind of failure: any, a full disk, or that the node must not take part in the system."""


@dataclass(frozen=True)
class Ticked:
    """Time has passed."""


@dataclass(frozen=True)
class AskedToLeave:
    """The node is to stop everything and give its lease back."""


@dataclass(frozen=True)
class LeaseBegun:
    """The node has a lease; ``asked_s`` is from before the catalog was asked, by the node's clock.

    ``life`` is the incarnation that the catalog knows it by.
    """

    number: int
    life: str
    asked_s: float


@dataclass(frozen=True)
class Occupied:
    """Another process holds the lease of this node."""

    number: int


@dataclass(frozen=True)
class LeaseRenewed:
    """The lease counts from ``asked_s`` on; unless it had run out before it could be renewed."""

    number: int
    asked_s: float
    is_held: bool = True


@dataclass(frozen=True)
class CatalogView:
    """The catalog as it was read, at ``catalog_s`` by its own clock.

    ``changes`` numbers its state; ``has_room`` says whether the disk that was full has room again.
    """

    changes: int
    catalog_s: float
    units: tuple[UnitRecord, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    moves: tuple[MoveRecord, ...] = ()
    has_room: bool = True


@dataclass(frozen=True)
class CatalogRead:
    """The catalog was read; no view if nothing has changed."""

    number: int
    view: CatalogView | None


@dataclass(frozen=True)
class UnitCondition:
    """How a unit that runs here is; ``measured`` is what it measured last, once it has finished."""

    failure: str | None = None
    is_for_want_of_room: bool = False
    is_finished: bool = False
    is_held_back: bool = False
    measured: FragmentStatus | None = None


@dataclass(frozen=True)
class UnitsChecked:
    """How the units are that were looked after."""

    number: int
    conditions: Mapping[str, UnitCondition]


@dataclass(frozen=True)
class Done:
    """An instruction was carried out."""

    number: int


@dataclass(frozen=True)
class NotDone:
    """An instruction failed. What it writes may have been written all the same."""

    number: int
    error: str
    trouble: Trouble = "error"


@dataclass(frozen=True)
class Skipped:
    """A start was not begun, because it held no more when its turn came."""

    number: int


Event = (
    Ticked
    | AskedToLeave
    | LeaseBegun
    | Occupied
    | LeaseRenewed
    | CatalogRead
    | UnitsChecked
    | Done
    | NotDone
    | Skipped
)
