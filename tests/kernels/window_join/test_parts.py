"""Groups that go from part to part at any moment: every pair still comes once."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.window_join.streams import cut, expected, in_time, table, terms_of, watermarks
from kernels.window_join.test_batch import bounds, kinds, sizes, streams
from laws import tried
from penstock.errors import InputError
from penstock.kernels.window_join import JoinOffset, RunCache, SideOffset, advance, join_batch
from penstock.kernels.window_join.memory_batches import MemoryBatches
from penstock.kernels.window_join.parts import Cohort, JoinPart
from penstock.kernels.window_join.terms import JoinTerms
from penstock.model.windows import TimeBound

pytestmark = pytest.mark.core

GROUPS = 5
LATENESS = 10


class Parts:
    """Parts of one join over the same batches, each at its own pace."""

    def __init__(self, terms: JoinTerms, left: list, right: list, count: int) -> None:
        self.terms = terms
        self.sides = (
            MemoryBatches("left", [table(terms.left, rows) for rows in left], "l_ts"),
            MemoryBatches("right", [table(terms.right, rows) for rows in right], "r_ts"),
        )
        self.marks = watermarks(left, LATENESS), watermarks(right, LATENESS)
        begin = Cohort(frozenset(range(GROUPS)), JoinOffset())
        self.parts = [JoinPart((begin,)), *(JoinPart() for _ in range(count - 1))]
        self.caches = [RunCache() for _ in self.parts]
        self.found: Counter = Counter()

    def target(self, left: int, right: int) -> JoinOffset:
        stops = (min(left, len(self.marks[0])), min(right, len(self.marks[1])))
        sides = (
            SideOffset(0, stop, marks[stop - 1] if stop else None)
            for stop, marks in zip(stops, self.marks, strict=True)
        )
        return JoinOffset(*sides)

    def move_on(self, number: int, left: int, right: int) -> None:
        moved = []
        for step in self.parts[number].steps(self.target(left, right)):
            before, owned = step.cohort.offset, step.cohort.groups
            for rows in join_batch(
                self.terms, *self.sides, before, step.after, self.caches[number], owned
            ):
                self.found.update(
                    zip(rows["l_n"].to_pylist(), rows["r_n"].to_pylist(), strict=True)
                )
            moved.append((step.cohort, advance(self.terms, *self.sides, before, step.after)))
        self.parts[number] = self.parts[number].reach(moved)

    def hand_over(self, source: int, target: int, groups: set[int]) -> None:
        leaving = self.parts[source].groups & groups
        self.parts[source], given = self.parts[source].give(leaving)
        self.parts[target] = self.parts[target].take(given)
        owned = [group for part in self.parts for group in part.groups]
        assert sorted(owned) == list(range(GROUPS)), "no group is lost or owned twice"


@given(st.data(), bounds(), kinds, sizes, sizes)
@tried(60)
def test_groups_move_at_any_moment(
    data: st.DataObject, bound: TimeBound, kind: str, lefts: list[int], rights: list[int]
) -> None:
    terms = terms_of((pa.int64(),), bound, kind=kind, groups=GROUPS)
    left, right = (in_time(data.draw(streams((pa.int64(),))), LATENESS) for _ in range(2))
    left_batches, right_batches = cut(left, lefts), cut(right, rights)
    world = Parts(terms, left_batches, right_batches, 3)
    which, batches = st.integers(0, 2), st.integers(0, 10)
    for _ in range(data.draw(st.integers(0, 12))):
        if data.draw(st.booleans()):
            world.move_on(data.draw(which), data.draw(batches), data.draw(batches))
        else:
            groups = data.draw(st.sets(st.integers(0, GROUPS - 1)))
            world.hand_over(data.draw(which), data.draw(which), groups)
    for number in range(3):
        world.move_on(number, len(left_batches), len(right_batches))
    assert world.found == expected(terms, left, right)
    assert all(len(part.cohorts) <= 1 for part in world.parts), "all are level at the end"


@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize("behind", range(14, 22))
def test_a_group_that_is_level_with_no_other_finds_runs_made_for_others(
    kind: str, behind: int
) -> None:
    bound = TimeBound(-60, 40)
    terms = terms_of((pa.int64(),), bound, kind=kind, groups=GROUPS)
    left, right = (
        [(5 * number, (number * 7 + shift) % 11, number) for number in range(160)]
        for shift in (0, 3)
    )
    left_batches, right_batches = (cut(side, [4] * 40) for side in (left, right))
    world = Parts(terms, left_batches, right_batches, 2)
    world.hand_over(0, 1, {0, 1})
    world.move_on(1, 16, 16)
    world.move_on(0, behind, behind)
    world.hand_over(0, 1, {2, 3})
    world.move_on(1, 27, 27)
    for number in range(2):
        world.move_on(number, len(left_batches), len(right_batches))
    assert world.found == expected(terms, left, right)


def test_what_a_part_does_not_own_it_cannot_give() -> None:
    part = JoinPart((Cohort(frozenset({1, 2}), JoinOffset()),))
    with pytest.raises(InputError, match=r"gives groups 4, which it does not own\. It owns 1, 2\."):
        part.give({2, 4})


def test_the_slowest_group_says_what_is_needed() -> None:
    ahead = JoinOffset(SideOffset(4, 9), SideOffset(6, 8))
    behind = JoinOffset(SideOffset(5, 6), SideOffset(1, 8))
    part = JoinPart((Cohort(frozenset({0}), ahead), Cohort(frozenset({1}), behind)))
    assert part.needs() == (4, 1)
    # Groups that are ahead wait for the others.
    (step,) = part.steps(JoinOffset(SideOffset(0, 9, 50), SideOffset(0, 8, 40)))
    assert step.cohort.groups == {1} and step.after.left == SideOffset(5, 9, 50)
