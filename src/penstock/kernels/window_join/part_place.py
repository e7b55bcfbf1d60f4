"""How far a part of a join has come, with what it has given away and nobody has taken yet.

Groups go from part to part by releases, which are exactly-once messages: a part gives a group by an
*epoch*, the number of the table of owners that says so, and whoever takes it takes no group by an
epoch that it knows. A release is *held* until the table says that it has been taken: so long the
time of the part that gave it does not pass that of the group, and the batches which the group
needs are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.kernels.window_join.parts import Cohort, JoinPart
from penstock.kernels.window_join.terms import JoinOffset
from penstock.model.group_table import GroupTable


@dataclass(frozen=True)
class GroupRelease:
    """Groups that part ``source`` gives to part ``target``, and how far they have come.

    ``epoch`` is the table of owners by which they go, ``released_s`` when the part gave them, by
    its clock.
    """

    epoch: int
    source: int
    target: int
    cohort: Cohort
    released_s: float = 0.0

    @property
    def name(self) -> str:
        """What no other release to the same part is called."""
        return f"{self.epoch:08d}-{self.source}-{min(self.cohort.groups)}"


@dataclass(frozen=True)
class PartPlace:
    """How far part ``number`` of a join has come.

    ``epochs`` has for each group the epoch by which it last came or went here, as far as the part
    knows. ``closed``: it has read everything and takes nothing more.

    >>> from penstock.model.parts import JoinSpread
    >>> owners = GroupTable.first(JoinSpread(2, 4))
    >>> one, two = (PartPlace.first(owners, number, JoinOffset()) for number in (1, 2))
    >>> one = one.release(owners.moved([0], 2))
    >>> two = two.take(one.held)
    >>> sorted(one.groups), sorted(two.groups), two == two.take(one.held)
    ([2], [0, 1, 3], True)
    """

    number: int
    cohorts: JoinPart
    epochs: tuple[int, ...]
    held: tuple[GroupRelease, ...] = ()
    closed: bool = False

    @classmethod
    def first(cls, owners: GroupTable, number: int, offset: JoinOffset) -> PartPlace:
        """The place of a part that nobody has run before."""
        groups = owners.groups_of(number)
        cohorts = JoinPart((Cohort(groups, offset),) if groups else ())
        return cls(number, cohorts, (0,) * len(owners.owners))

    @property
    def groups(self) -> frozenset[int]:
        """The groups it joins."""
        return self.cohorts.groups

    def release(self, owners: GroupTable, now_s: float = 0.0) -> PartPlace:
        """Gives away the groups that are another's by a table that is newer than what it knows."""
        leaving = [
            group
            for group in self.groups
            if owners.owners[group] != self.number and owners.epochs[group] > self.epochs[group]
        ]
        if not leaving or self.closed:
            return self
        place, found = self, list(self.held)
        for target, epoch in sorted({(owners.owners[g], owners.epochs[g]) for g in leaving}):
            chosen = [g for g in leaving if (owners.owners[g], owners.epochs[g]) == (target, epoch)]
            stay, given = place.cohorts.give(chosen)
            found += [GroupRelease(epoch, self.number, target, cohort, now_s) for cohort in given]
            place = replace(place, cohorts=stay, epochs=_raised(place.epochs, chosen, epoch))
        return replace(place, held=tuple(found))

    def take(self, releases: Iterable[GroupRelease]) -> PartPlace:
        """Takes what is new of some releases; others are left as they are."""
        place = self
        for release in releases:
            cohort, new = release.cohort, place.unknown(release)
            if new and not place.closed:
                taken = place.cohorts.take([Cohort(new, cohort.offset)])
                epochs = _raised(place.epochs, new, release.epoch)
                place = replace(place, cohorts=taken, epochs=epochs)
        return place

    def unknown(self, release: GroupRelease) -> frozenset[int]:
        """The groups of a release that it has not taken yet."""
        groups = release.cohort.groups
        return frozenset(group for group in groups if self.epochs[group] < release.epoch)

    def let_go(self, owners: GroupTable) -> PartPlace:
        """Holds no longer what has been taken."""
        moving = frozenset(owners.moving)
        held = tuple(release for release in self.held if release.cohort.groups & moving)
        return self if len(held) == len(self.held) else replace(self, held=held)

    def arrived(self, owners: GroupTable) -> frozenset[int]:
        """The groups that it has taken, which the table does not say yet."""
        coming = owners.moving_to(self.number) & self.groups
        return frozenset(g for g in coming if self.epochs[g] == owners.epochs[g])

    def reach(self, moved: Iterable[tuple[Cohort, JoinOffset]]) -> PartPlace:
        """The place once some cohorts have come further."""
        return replace(self, cohorts=self.cohorts.reach(moved))

    def has_all(self, owners: GroupTable, end: JoinOffset) -> bool:
        """Whether it owns what it is to own, all as far as ``end``, and nothing is under way."""
        level = all(
            (cohort.offset.left.stop, cohort.offset.right.stop) == (end.left.stop, end.right.stop)
            for cohort in self.cohorts.cohorts
        )
        is_still = not self.held and not owners.moving_to(self.number)
        return level and is_still and self.groups == owners.groups_of(self.number)

    def close(self) -> PartPlace:
        """Takes nothing more from now on."""
        return replace(self, closed=True)

    @property
    def offsets(self) -> tuple[JoinOffset, ...]:
        """How far its groups have come, those that nobody has taken yet included."""
        given = (release.cohort.offset for release in self.held)
        return (*(cohort.offset for cohort in self.cohorts.cohorts), *given)

    def needs(self) -> tuple[int, int] | None:
        """The first batches of both sides that some group still needs; None without groups."""
        if not self.offsets:
            return None
        return (
            min(offset.left.first for offset in self.offsets),
            min(offset.right.first for offset in self.offsets),
        )


def _raised(epochs: tuple[int, ...], groups: Iterable[int], epoch: int) -> tuple[int, ...]:
    raised = list(epochs)
    for group in groups:
        raised[group] = epoch
    return tuple(raised)
