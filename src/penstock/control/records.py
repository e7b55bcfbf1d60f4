"""What the catalog knows, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.model.beginnings import Begun
from penstock.model.measurements import FragmentStatus
from penstock.model.sharing import NOTHING_SHARED, Sharing

SubmissionKind = Literal["yaml", "sql", "segment"]
UnitKind = Literal["fragment", "intake"]
UnitState = Literal["waiting", "running", "finished", "failed", "released", "held back"]
MoveState = Literal["preparing", "moving", "done", "failed"]
UNREADABLE: Literal["unreadable"] = "unreadable"
"""How an input is shown of which nothing could be read, and all that reads it."""
Mover = Literal["people", "balancer", "failover", "return", "tree", "neighbours"]
_MOVERS: tuple[Mover, ...] = ("balancer", "failover", "return", "tree", "neighbours")

BalanceSetter = Literal["nobody", "file", "command"]


@dataclass(frozen=True)
class Submission:
    """Something people asked the system to run, as they wrote it.

    ``kind`` says how it is written: ``yaml`` for a deployment, ``sql`` for a single query,
    ``segment`` for the server's part of a query for devices at another cut.
    ``begun`` is since when its fragments count and ``sharing`` what it reads of others instead of
    computing it, both decided when it was taken in. Of one that ``is_dropped`` stays what others
    share.
    """

    id: int
    name: str
    kind: SubmissionKind
    text: str
    folder: str
    max_latency_us: int | None = None
    begun: Begun = field(default_factory=Begun)
    sharing: Sharing = NOTHING_SHARED
    is_dropped: bool = False


@dataclass(frozen=True)
class BalanceRecord:
    """How the system is balanced, as it was written, and who said so when.

    ``submission`` is the one whose file says it, if it was ``set_by`` a file.
    """

    settings: Mapping[str, object] = field(default_factory=dict)
    set_by: BalanceSetter = "nobody"
    submission: str | None = None
    at_s: float | None = None


@dataclass(frozen=True)
class NodeRecord:
    """A node: what it has, which process runs it, and until when it may be taken for alive.

    ``incarnation`` is new with every process. ``joined_s``, since when it has held its lease
    without a break, and ``lease_until_s`` are the catalog's times. Nodes of a tree have a
    ``parent``, all but its root.
    """

    name: str
    cores: int
    memory_bytes: int
    incarnation: str = ""
    pid: int = 0
    version: str = ""
    lease_until_s: float = 0.0
    joined_s: float = 0.0
    parent: str | None = None

    def is_alive(self, now_s: float) -> bool:
        """Whether its lease has not run out."""
        return self.lease_until_s > now_s


@dataclass(frozen=True)
class Contact:
    """Where a node takes messages in its present life, and what it has heard of others.

    ``heard`` is how old what it knows of each of them was at ``heard_s``, by the catalog's clock.
    """

    node: str
    life: str
    address: str
    heard: Mapping[str, float] = field(default_factory=dict)
    heard_s: float = 0.0


@dataclass(frozen=True)
class UnitRecord:
    """A fragment or an intake: where it is to run, and what its owner has last said about it.

    ``epoch`` counts its owners; ``released_epoch`` is the newest one that is known to have stopped.
    ``state`` and ``error`` are what the owner with ``reported_epoch`` reported, ``measured`` what
    it measured last once it has finished. ``restarts`` counts the times it was started again
    because it had failed. ``pinned`` is where people want it, ``planned`` where a strategy has put
    it at first. ``belongs`` is the node it goes back to, where it ran before that node fell silent;
    ``returns`` counts how often that was tried. One that ``is_dropped`` only has to stop; the
    intake of a stream that ``is_unread`` waits for somebody who reads it.

    Times are the catalog's: when it was given to its owner, when the lease of the owner before had
    ended if that is why, since when its owner says the same or better of it, and when an owner last
    stopped it.
    """

    name: str
    kind: UnitKind
    submission: int
    node: str | None = None
    epoch: int = 0
    previous: str | None = None
    released_epoch: int = 0
    state: UnitState = "waiting"
    reported_epoch: int = 0
    error: str = ""
    restarts: int = 0
    pinned: str | None = None
    planned: str | None = None
    belongs: str | None = None
    returns: int = 0
    is_dropped: bool = False
    measured: FragmentStatus | None = None
    is_unread: bool = False
    assigned_s: float | None = field(default=None, compare=False)
    lost_s: float | None = field(default=None, compare=False)
    since_s: float | None = field(default=None, compare=False)
    released_s: float | None = field(default=None, compare=False)

    @property
    def is_up(self) -> bool:
        """Whether its present owner has said that it runs or has finished."""
        up = self.state in ("running", "held back", "finished")
        return up and self.reported_epoch == self.epoch

    def has_said(self, state: UnitState) -> bool:
        """Whether that is the last word of its present owner."""
        return self.state == state and self.reported_epoch == self.epoch


@dataclass(frozen=True)
class MoveRecord:
    """A unit, or groups of a join, on the way from one node to another, and how far that is.

    ``numbers`` is what the decision rests on. ``pause_s`` is the time in which nobody worked on the
    unit: from the moment its former owner stopped until the new one got through its first batch.
    """

    id: int
    unit: str
    source: str
    target: str
    state: MoveState
    is_warm: bool
    created_s: float
    ended_s: float | None = None
    pause_s: float | None = None
    reason: str = ""
    numbers: Mapping[str, object] = field(default_factory=dict)
    error: str = ""

    @property
    def is_open(self) -> bool:
        return self.state in ("preparing", "moving")

    @property
    def by(self) -> Mover:
        """Who wanted it."""
        found = self.numbers.get("by")
        return next((mover for mover in _MOVERS if mover == found), "people")

    @property
    def is_of_groups(self) -> bool:
        """Whether groups of a join move, and not a unit."""
        return "groups" in self.numbers


@dataclass(frozen=True)
class EventRecord:
    """Something that was decided or happened, with the numbers it rests on."""

    id: int
    at_s: float
    kind: str
    subject: str
    text: str
    numbers: Mapping[str, object] = field(default_factory=dict)
