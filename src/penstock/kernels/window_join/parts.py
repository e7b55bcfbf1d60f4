"""Parts of a join: each owns some partition groups, and groups go from part to part.

A group is handed over by its offset alone, because its window lies in the channels. Groups that
have come equally far are a *cohort* and are joined together. One that arrives behind the others is
a cohort of its own until it has caught up; one that arrives ahead waits until they have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import InputError, listed
from penstock.kernels.window_join.terms import JoinOffset, SideOffset


@dataclass(frozen=True)
class Cohort:
    """Groups that have come equally far."""

    groups: frozenset[int]
    offset: JoinOffset


@dataclass(frozen=True)
class PartStep:
    """What a part has to join next: the rows of a cohort's groups, from its offset to another."""

    cohort: Cohort
    after: JoinOffset


@dataclass(frozen=True)
class JoinPart:
    """The cohorts of a part; no group is in two of them.

    >>> level = Cohort(frozenset({0, 1}), JoinOffset())
    >>> part, given = JoinPart((level,)).give({1})
    >>> sorted(part.groups), [sorted(cohort.groups) for cohort in given]
    ([0], [[1]])
    >>> part.take(given) == JoinPart((level,))
    True
    """

    cohorts: tuple[Cohort, ...] = ()

    @property
    def groups(self) -> frozenset[int]:
        """All groups of the part."""
        return frozenset().union(*(cohort.groups for cohort in self.cohorts))

    def give(self, groups: Iterable[int]) -> tuple[JoinPart, tuple[Cohort, ...]]:
        """The part without these groups, and how far each has come, for whoever takes them."""
        leaving = frozenset(groups)
        if not leaving <= self.groups:
            raise InputError(
                f"a part gives groups {listed(map(str, sorted(leaving - self.groups)))}, "
                f"which it does not own",
                hint=f"It owns {listed(map(str, sorted(self.groups)))}.",
            )
        stay = (Cohort(cohort.groups - leaving, cohort.offset) for cohort in self.cohorts)
        go = (Cohort(cohort.groups & leaving, cohort.offset) for cohort in self.cohorts)
        return (
            JoinPart(tuple(cohort for cohort in stay if cohort.groups)),
            tuple(cohort for cohort in go if cohort.groups),
        )

    def take(self, arriving: Iterable[Cohort]) -> JoinPart:
        """The part with these groups as well; those that are level with others join them."""
        found: dict[JoinOffset, frozenset[int]] = {}
        for cohort in (*self.cohorts, *arriving):
            known = found.get(cohort.offset, frozenset())
            assert not known & cohort.groups, "a group has one owner"
            found[cohort.offset] = known | cohort.groups
        return JoinPart(tuple(Cohort(groups, offset) for offset, groups in found.items()))

    def steps(self, target: JoinOffset) -> tuple[PartStep, ...]:
        """What to join so that every group is at ``target`` or beyond; each side for itself."""
        return tuple(
            PartStep(cohort, after)
            for cohort in self.cohorts
            for after in [_furthest(cohort.offset, target)]
            if after != cohort.offset
        )

    def reach(self, moved: Iterable[tuple[Cohort, JoinOffset]]) -> JoinPart:
        """The part once some of its cohorts have come to other offsets."""
        reached = dict(moved)
        return JoinPart().take(
            Cohort(cohort.groups, reached.get(cohort, cohort.offset)) for cohort in self.cohorts
        )

    def needs(self) -> tuple[int, int]:
        """The first batches of the left and the right side that some group still needs."""
        return (
            min(cohort.offset.left.first for cohort in self.cohorts),
            min(cohort.offset.right.first for cohort in self.cohorts),
        )


def _furthest(offset: JoinOffset, target: JoinOffset) -> JoinOffset:
    return JoinOffset(_later(offset.left, target.left), _later(offset.right, target.right))


def _later(side: SideOffset, target: SideOffset) -> SideOffset:
    if target.stop <= side.stop:
        return side
    return SideOffset(side.first, target.stop, target.watermark_us)
