"""Which part of a join owns which of its groups: a table, every change of which has a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from penstock.errors import InputError, listed
from penstock.model.parts import JoinSpread, first_owners


@dataclass(frozen=True)
class GroupTable:
    """The ``number``-th table: the owner of each group, and by which table it was given to it.

    Groups that are ``moving`` have been given to their owners and not been taken yet; they cannot
    be given to somebody else meanwhile. ``pauses`` are for how long nobody joined a group when it
    last moved, in seconds, as far as its new owner knows. ``closed`` are the parts that have read
    everything, and neither give nor take any more.

    >>> first = GroupTable.first(JoinSpread(2, 4))
    >>> first.owners, first.moved([0], 2).owners, first.moved([0], 2).epochs
    ((1, 2, 1, 2), (2, 2, 1, 2), (1, 0, 0, 0))
    """

    number: int
    owners: tuple[int, ...]
    epochs: tuple[int, ...]
    moving: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()
    pauses: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def first(cls, spread: JoinSpread) -> GroupTable:
        """The table before any group has moved."""
        return cls(0, first_owners(spread), (0,) * spread.groups)

    def groups_of(self, part: int) -> frozenset[int]:
        """What a part is to own."""
        return frozenset(group for group, owner in enumerate(self.owners) if owner == part)

    def moved(self, groups: Iterable[int], part: int) -> GroupTable:
        """The next table, in which these groups are given to a part; raises where they cannot."""
        wanted = sorted(set(groups))
        unknown = [group for group in wanted if not 0 <= group < len(self.owners)]
        if unknown:
            raise InputError(
                f"there is no group {unknown[0]}",
                hint=f"Groups are numbered from 0 to {len(self.owners) - 1}.",
            )
        here = [group for group in wanted if self.owners[group] == part]
        if here or not wanted:
            raise InputError(
                f"part {part} has {listed(map(str, here))} already" if here else "no groups given",
                hint="Name groups that another part has.",
            )
        busy = sorted(set(wanted) & set(self.moving))
        if busy:
            raise InputError(
                f"{_counted(busy)} being moved already", hint="Wait until that is done."
            )
        ending = sorted({part, *(self.owners[group] for group in wanted)} & set(self.closed))
        if ending:
            raise InputError(
                f"part {ending[0]} has read everything",
                hint="A join that is at its end moves no groups any more.",
            )
        number = self.number + 1
        return replace(
            self,
            number=number,
            owners=_with(self.owners, wanted, part),
            epochs=_with(self.epochs, wanted, number),
            moving=tuple(sorted({*self.moving, *wanted})),
            pauses={group: s for group, s in self.pauses.items() if group not in wanted},
        )

    def settled(
        self, groups: Iterable[int], pauses: Mapping[int, float] = MappingProxyType({})
    ) -> GroupTable:
        """The next table, in which these groups have come to their owners, after these pauses."""
        come = set(groups)
        moving = tuple(sorted(set(self.moving) - come))
        known = {group: round(s, 3) for group, s in pauses.items() if group in come}
        pauses = {**self.pauses, **known}
        return replace(self, number=self.number + 1, moving=moving, pauses=pauses)

    def moving_to(self, part: int) -> frozenset[int]:
        """The groups that a part is to take and has not said it has."""
        return self.groups_of(part) & frozenset(self.moving)

    def closing(self, part: int) -> GroupTable:
        """The next table, from which on a part neither gives nor takes."""
        return replace(self, number=self.number + 1, closed=(*self.closed, part))


def _counted(groups: list[int]) -> str:
    numbers = listed(map(str, groups))
    return f"group {numbers} is" if len(groups) == 1 else f"groups {numbers} are"


def _with(values: tuple[int, ...], places: Iterable[int], value: int) -> tuple[int, ...]:
    changed = list(values)
    for place in places:
        changed[place] = value
    return tuple(changed)
