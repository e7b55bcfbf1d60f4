"""Parts of a join that is shared out to nodes: what each owns, and what is called after it.

A node owns parts of fragments. Nearly all fragments have one part, which is the whole. A join that
is spread has several: each joins the rows of the partition groups it owns, and gives a channel of
its own. The join's fragment then gathers these channels, so that its readers see one stream.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, cast, get_args

from penstock.errors import InputError
from penstock.model.durations import US_PER_S, duration_text
from penstock.model.ids import ChannelId, FragmentId, PartId, ReaderId, channel_for, reader_for
from penstock.model.partition_groups import GROUPS_AT_MOST

PARTS_AT_MOST = 32
AUTOMATIC_PARTS = 4
"""How many parts a join has that may have as many as it needs; those without groups cost little."""
DEFAULT_GROUPS = 60
DEFAULT_PERIOD_US = 20 * US_PER_S
"""The source's reorganisation epoch."""
SHORTEST_PERIOD_US = 2 * US_PER_S
"""Nodes measure their parts about once a second, and two measurements are needed."""

GroupChoice = Literal["load", "random", "off"]
GROUP_CHOICES: tuple[GroupChoice, ...] = get_args(GroupChoice)


@dataclass(frozen=True)
class JoinSpread:
    """How a join is shared out: to how many parts, in how many groups.

    Without a number of parts, groups are given to as many as the load asks for. ``moves`` says by
    what the groups are chosen that are taken from busy parts: by their load, at random, or none,
    and ``period_us`` how often that is looked at.

    >>> JoinSpread(3).most_parts, JoinSpread().most_parts
    (3, 4)
    """

    parts: int | None = None
    groups: int = DEFAULT_GROUPS
    moves: GroupChoice = "load"
    period_us: int = DEFAULT_PERIOD_US

    def __post_init__(self) -> None:
        if self.parts is not None and not 2 <= self.parts <= PARTS_AT_MOST:
            raise InputError(
                f"a join cannot be spread to {self.parts} parts",
                hint=f"Say spread: auto, or a number from 2 to {PARTS_AT_MOST}.",
            )
        if not self.most_parts <= self.groups <= GROUPS_AT_MOST:
            raise InputError(
                f"a join in {self.most_parts} parts cannot have {self.groups} groups",
                hint=f"Give at least as many groups as parts, and at most {GROUPS_AT_MOST}.",
            )
        if self.moves not in GROUP_CHOICES:
            raise InputError(
                f"groups of a join cannot be moved {self.moves!r}",
                hint="Say moves: load, random or off.",
            )
        if self.period_us < SHORTEST_PERIOD_US:
            raise InputError(
                f"parts of a join cannot be compared every {duration_text(self.period_us)}",
                hint=f"Say every: {duration_text(SHORTEST_PERIOD_US)} or more.",
            )

    @property
    def most_parts(self) -> int:
        """How many parts there are, with or without groups."""
        return self.parts or AUTOMATIC_PARTS


@dataclass(frozen=True)
class Part:
    """One of several parts of the fragment ``whole``, numbered from 1.

    >>> part = Part(FragmentId("pairs"), 2, JoinSpread(3, 60))
    >>> part.id, sorted(part.first_groups)[:3]
    ('pairs_part2', [1, 4, 7])
    """

    whole: FragmentId
    number: int
    spread: JoinSpread

    @property
    def id(self) -> PartId:
        return PartId(f"{self.whole}_part{self.number}")

    @property
    def channel(self) -> ChannelId:
        """The channel that it fills."""
        return channel_for(self.id)

    @property
    def reader(self) -> ReaderId:
        """As what it reads its inputs."""
        return reader_for(self.id)

    @property
    def first_groups(self) -> frozenset[int]:
        """The groups it owns before any has moved."""
        owners = first_owners(self.spread)
        return frozenset(group for group, owner in enumerate(owners) if owner == self.number)


def join_spread(
    spread: str,
    groups: int = DEFAULT_GROUPS,
    moves: str = "load",
    period_us: int = DEFAULT_PERIOD_US,
) -> JoinSpread:
    """What somebody wrote about how a join is shared out.

    >>> join_spread("auto", 12)
    JoinSpread(parts=None, groups=12, moves='load', period_us=20000000)
    """
    choice = cast(GroupChoice, moves)  # Checked when the record is made.
    if spread == "auto":
        return JoinSpread(None, groups, choice, period_us)
    if not spread.isdecimal():
        raise InputError(
            f"a join cannot be spread {spread!r}",
            hint=f"Say spread: auto, or a number from 2 to {PARTS_AT_MOST}.",
        )
    return JoinSpread(int(spread), groups, choice, period_us)


def spread_settings(spread: JoinSpread) -> dict[str, str | int]:
    """How a spread is written: what :func:`join_spread` reads, without what goes without saying.

    >>> spread_settings(JoinSpread(3))
    {'spread': 3, 'groups': 60}
    """
    written: dict[str, str | int] = {"spread": spread.parts or "auto", "groups": spread.groups}
    if spread.moves != "load":
        written["moves"] = spread.moves
    if spread.period_us != DEFAULT_PERIOD_US:
        written["every"] = duration_text(spread.period_us)
    return written


def first_owners(spread: JoinSpread) -> tuple[int, ...]:
    """Which part owns each group before any has moved."""
    return tuple(group % spread.most_parts + 1 for group in range(spread.groups))


def parts_of(whole: str, spread: JoinSpread) -> tuple[Part, ...]:
    """All parts of a fragment."""
    return tuple(
        Part(FragmentId(whole), number, spread) for number in range(1, spread.most_parts + 1)
    )


def node_of_part(part: Part, nodes: Collection[str]) -> str:
    """Where a part begins: each on another node, as far as there are nodes.

    >>> [node_of_part(part, {"b", "a"}) for part in parts_of("pairs", JoinSpread(3))]
    ['a', 'b', 'a']
    """
    known = sorted(nodes)
    return known[(part.number - 1) % len(known)]
