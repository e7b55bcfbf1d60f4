"""What workers of a join report, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from penstock.errors import InputError

Role = Literal["supplier", "consumer", "neutral"]


@dataclass(frozen=True)
class WorkerReport:
    """How a worker fared over the last period.

    ``occupancy`` is the mean part of its buffer that was full; ``loads`` what each of its groups
    took of its processor, 1 being all of it.
    """

    worker: str
    occupancy: float
    loads: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.occupancy <= 1:
            raise InputError(
                f"{self.worker} reports an occupancy of {self.occupancy}",
                hint="It is a part of the buffer, from 0 to 1.",
            )

    @property
    def load(self) -> float:
        """What all its groups take of its processor."""
        return sum(self.loads.values())


@dataclass(frozen=True)
class GroupSettings:
    """When workers give and take groups, and how many of them there are.

    A worker above ``supplier_above`` gives, one below ``consumer_below`` takes. One more is added
    when suppliers outnumber ``beta`` times the consumers. One is released when there is no supplier
    and the others would then be at most ``release_below`` busy: without that a worker would be
    released and added in turn. After each change ``rest_periods`` pass before the next.

    Buffers tell of many tuples, not of dear ones: a key with many partners keeps a worker busy
    while its buffer is nearly empty. With ``busy_above`` a worker whose load is higher gives, too.
    """

    supplier_above: float = 0.5
    consumer_below: float = 0.01
    busy_above: float | None = None
    choice: Literal["load", "random"] = "load"
    adaptive: bool = False
    beta: float = 0.5
    release_below: float = 0.8
    rest_periods: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.consumer_below < self.supplier_above < 1:
            raise InputError(
                f"consumers below {self.consumer_below} and suppliers above {self.supplier_above}",
                hint="Give 0 <= consumers < suppliers < 1.",
            )
        if self.busy_above is not None and not self.busy_above > 0:
            raise InputError(
                f"workers give above a load of {self.busy_above}", hint="Give a load above 0."
            )
        if not (0 < self.beta < 1 and 0 < self.release_below <= 1 and self.rest_periods >= 0):
            raise InputError(
                f"beta {self.beta}, release below {self.release_below}, rest {self.rest_periods}",
                hint="Give 0 < beta < 1, 0 < release below <= 1, and a rest of 0 or more.",
            )

    def role(self, report: WorkerReport) -> Role:
        """Whether a worker gives, takes, or neither.

        >>> GroupSettings().role(WorkerReport("a", 0.7))
        'supplier'
        """
        if report.occupancy > self.supplier_above:
            return "supplier"
        return "consumer" if report.occupancy < self.consumer_below else "neutral"

    def gives(self, report: WorkerReport) -> bool:
        """Whether a worker has a group to give: a supplier, or one that is too busy.

        >>> GroupSettings(busy_above=0.95).gives(WorkerReport("a", 0.0, {3: 0.97}))
        True
        """
        busy = self.busy_above is not None and report.load > self.busy_above
        return busy or self.role(report) == "supplier"


@dataclass(frozen=True)
class GroupMove:
    """One group changes hands, and why."""

    group: int
    source: str
    target: str
    reason: str


@dataclass(frozen=True)
class WorkerAdded:
    """A worker begins to take part."""

    worker: str
    reason: str


@dataclass(frozen=True)
class WorkerReleased:
    """A worker that has given its groups away takes part no longer."""

    worker: str
    reason: str


GroupInstruction: TypeAlias = GroupMove | WorkerAdded | WorkerReleased


@dataclass(frozen=True)
class GroupOwners:
    """Who owns each group, who takes part at all, and for how many periods no more changes.

    >>> GroupOwners.deal(5, ["a", "b"]).of("a")
    (0, 2, 4)
    """

    owners: tuple[str, ...]
    workers: tuple[str, ...]
    resting: int = 0

    def __post_init__(self) -> None:
        if not self.workers or len(set(self.workers)) != len(self.workers):
            raise InputError("groups need at least one worker, and each of them once")
        strangers = sorted(set(self.owners) - set(self.workers))
        if strangers:
            raise InputError(f"groups are owned by {strangers[0]}, which takes no part")

    @classmethod
    def deal(cls, groups: int, workers: list[str]) -> GroupOwners:
        """Groups dealt out to workers one by one."""
        return cls(tuple(workers[at % len(workers)] for at in range(groups)), tuple(workers))

    def of(self, worker: str) -> tuple[int, ...]:
        """The groups of a worker."""
        return tuple(group for group, owner in enumerate(self.owners) if owner == worker)
