"""Groups on their way between parts: whatever is lost, late or repeated, each has one owner."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.kernels.window_join.part_place import GroupRelease, PartPlace
from penstock.kernels.window_join.terms import JoinOffset, SideOffset
from penstock.model.group_table import GroupTable
from penstock.model.parts import JoinSpread

PARTS, GROUPS = 3, 5
STEPS = ("read", "release", "publish", "take", "settle", "let go")


@dataclass
class Parts:
    """Parts that do one step at a time, with all that they have written so far."""

    owners: GroupTable = field(default_factory=lambda: GroupTable.first(JoinSpread(PARTS, GROUPS)))
    places: dict[int, PartPlace] = field(default_factory=dict)
    given: set[GroupRelease] = field(default_factory=set)
    joined: dict[int, list[int]] = field(default_factory=lambda: {g: [] for g in range(GROUPS)})

    def __post_init__(self) -> None:
        for number in range(1, PARTS + 1):
            self.places[number] = PartPlace.first(self.owners, number, JoinOffset())

    def step(self, number: int, what: str) -> None:
        place = self.places[number]
        if what == "read":
            self._read(number)
        elif what == "release":
            self.places[number] = place.release(self.owners)
        elif what == "publish":
            self.given |= set(place.held)
        elif what == "take":
            mine = [release for release in self.given if release.target == number]
            self.places[number] = place.take(mine)
        elif what == "settle":
            arrived = place.arrived(self.owners)
            if arrived:
                self.owners = self.owners.settled(arrived)
        else:
            self.places[number] = place.let_go(self.owners)

    def _read(self, number: int) -> None:
        """Every group of the part joins one more batch of each side."""
        place, moved = self.places[number], []
        for cohort in place.cohorts.cohorts:
            at = cohort.offset.left.stop
            for group in cohort.groups:
                self.joined[group].append(at)
            side = SideOffset(at, at + 1, at)
            moved.append((cohort, JoinOffset(side, side)))
        self.places[number] = place.reach(moved)

    def least_time(self) -> list[int]:
        """The time that each part tells."""
        return [
            min((offset.left.watermark_us or 0 for offset in place.offsets), default=1 << 40)
            for place in self.places.values()
        ]


step = st.tuples(st.integers(1, PARTS), st.sampled_from(STEPS))
wish = st.tuples(st.sets(st.integers(0, GROUPS - 1), min_size=1), st.integers(1, PARTS))


@given(st.lists(st.one_of(step, wish), max_size=120))
def test_every_group_joins_every_batch_once(todo: list[tuple]) -> None:
    parts = Parts()
    for first, second in todo:
        if isinstance(second, str):
            parts.step(first, second)
        else:
            try:
                parts.owners = parts.owners.moved(first, second)
            except InputError:
                continue
        owned = [group for place in parts.places.values() for group in place.groups]
        assert len(owned) == len(set(owned))
    for _ in range(2):
        for what in ("release", "publish", "take", "settle", "let go"):
            for number in parts.places:
                parts.step(number, what)
    assert not parts.owners.moving
    for number, place in parts.places.items():
        assert place.groups == parts.owners.groups_of(number)
        assert not place.held
    assert all(batches == list(range(len(batches))) for batches in parts.joined.values())


@given(st.lists(st.one_of(step, wish), max_size=120))
def test_no_group_falls_behind_the_least_time_of_the_parts(todo: list[tuple]) -> None:
    parts = Parts()
    for first, second in todo:
        if isinstance(second, str):
            parts.step(first, second)
        else:
            try:
                parts.owners = parts.owners.moved(first, second)
            except InputError:
                continue
        # What a group has come to, wherever it is; the parts together tell no later time.
        slowest = min(batches[-1] if batches else 0 for batches in parts.joined.values())
        assert min(parts.least_time()) <= slowest


def test_a_group_on_its_way_is_not_given_to_somebody_else() -> None:
    owners = GroupTable.first(JoinSpread(PARTS, GROUPS)).moved([0], 2)
    with pytest.raises(InputError, match="group 0 is being moved already"):
        owners.moved([0], 3)
    assert owners.settled([0]).moved([0], 3).groups_of(3) == {0, 2}


def test_who_has_read_everything_neither_gives_nor_takes() -> None:
    owners = GroupTable.first(JoinSpread(PARTS, GROUPS)).closing(2)
    for groups, part in (([0], 2), ([1], 3)):
        with pytest.raises(InputError, match="part 2 has read everything"):
            owners.moved(groups, part)


def test_a_part_closes_once_it_has_all_that_it_is_to_have() -> None:
    owners = GroupTable.first(JoinSpread(2, 2)).moved([0], 2)
    end = JoinOffset(SideOffset(3, 3, 9), SideOffset(2, 2, 9))
    one, two = (PartPlace.first(owners.first(JoinSpread(2, 2)), n, end) for n in (1, 2))
    assert not two.has_all(owners, end)
    one = one.release(owners)
    two = two.take(one.held)
    assert not two.has_all(owners, end), "the table does not say yet that it has taken it"
    owners = owners.settled(two.arrived(owners))
    assert two.has_all(owners, end)
    assert not one.has_all(owners, end), "it holds what it gave"
    assert one.let_go(owners).has_all(owners, end)
