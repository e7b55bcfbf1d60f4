"""What is joined, on what, and what everything costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.balance.groups.directory import SizeLimits
from penstock.balance.groups.reports import GroupSettings
from penstock.errors import InputError

CELL_BITS = 6
"""The finest mini-partitions of a group: a sixty-fourth of its hashes."""


@dataclass(frozen=True)
class JoinWorkload:
    """Two streams with Poisson arrivals, keys of the b-model, and the windows they are joined in.

    ``hot`` is the part of all tuples that has one key in common, beside the b-model.
    """

    rate_per_s: float = 1_500.0
    window_s: float = 600.0
    b: float = 0.7
    largest_key: int = 10_000_000
    hot: float = 0.0
    groups: int = 60

    def __post_init__(self) -> None:
        if not (self.rate_per_s > 0 and self.window_s > 0 and 0 <= self.hot < 1):
            raise InputError(
                f"{self.rate_per_s} tuples a second, a window of {self.window_s} s, "
                f"{self.hot} of them with one key",
                hint="Give a rate and a window above 0, and a part from 0 to 1.",
            )


@dataclass(frozen=True)
class JoinCosts:
    """What a worker spends on what; with these the source's measured points come out.

    Seconds per comparison of two tuples, per tuple, per result, per message and per byte sent.
    """

    comparison_s: float = 11.2e-9
    tuple_s: float = 55e-6
    result_s: float = 9.0e-6
    message_s: float = 2e-3
    byte_s: float = 0.1e-6
    tuple_bytes: int = 64
    block_bytes: int = 4_096
    buffer_bytes: int = 1_000_000

    @property
    def block_tuples(self) -> int:
        return self.block_bytes // self.tuple_bytes

    @property
    def buffer_tuples(self) -> int:
        return self.buffer_bytes // self.tuple_bytes


@dataclass(frozen=True)
class JoinClusterSettings:
    """The cluster and its rhythm.

    ``slots`` is the number of sub-groups that workers are served in, one after the other, in every
    distribution epoch. ``connects``: a worker that connects *at once* waits idly until the master
    has served those before it; one that connects *in turn* works until then. ``speeds`` are those
    of the workers, 1 for each that is not named.
    """

    workers: int = 4
    distribution_s: float = 2.0
    reorganisation_s: float = 20.0
    slots: int = 1
    connects: Literal["at once", "in turn"] = "at once"
    tuning: SizeLimits | None = field(default_factory=lambda: SizeLimits(1.5e6))
    groups: GroupSettings = field(default_factory=lambda: GroupSettings(choice="random"))
    speeds: tuple[float, ...] = ()
    moves: bool = True

    def __post_init__(self) -> None:
        if not (self.workers >= 1 and 1 <= self.slots <= self.workers):
            raise InputError(
                f"{self.workers} workers in {self.slots} slots",
                hint="Give at least one worker, and at most as many slots as workers.",
            )
        if not 0 < self.distribution_s <= self.reorganisation_s:
            raise InputError(
                f"tuples are sent every {self.distribution_s} s and groups moved every "
                f"{self.reorganisation_s} s",
                hint="Give a distribution epoch above 0 and no longer than a reorganisation epoch.",
            )

    def speed(self, worker: int) -> float:
        return self.speeds[worker] if worker < len(self.speeds) else 1.0
