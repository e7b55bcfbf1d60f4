"""A member of a bundle at work: what it computes, and how far it has come in its inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.channels.channel import Channel
from penstock.channels.manifest import END_OF_TIME_US, Manifest
from penstock.kernels.join_plan import JoinPlan
from penstock.kernels.planning import LightPlan
from penstock.kernels.window_join import JoinOffset, SideOffset
from penstock.kernels.window_join.part_place import PartPlace
from penstock.kernels.window_state import LONG_AGO_US
from penstock.model.beginnings import InputStart
from penstock.model.group_table import GroupTable
from penstock.spark.bundles.bundle_log import InputPlace, Member, MemberPlace

_AFTER_ALL_US = 2**62
"""Later than the end of any window."""


@dataclass(frozen=True)
class InputPosition:
    """How far a member has come in one of the streams that it reads.

    ``next`` is the first batch it has not read: of the channel ``begin.before`` while ``before``
    holds, of the stream's channel afterwards. ``first`` is the oldest batch that it still needs.
    """

    stream: str
    begin: InputStart | None
    next: int
    first: int
    watermark_us: int = LONG_AGO_US
    ended: bool = False
    before: bool = False

    @property
    def channel(self) -> str:
        """The name of the channel that the next batch lies in."""
        if not self.before:
            return self.stream
        assert self.begin is not None and self.begin.before is not None
        return self.begin.before

    def after(self, manifests: Sequence[Manifest]) -> InputPosition:
        """The position behind these batches of the channel; none of them is needed any more."""
        if not manifests:
            return self
        last = manifests[-1]
        given = (manifest.watermark_us for manifest in manifests)
        told = [watermark_us for watermark_us in given if watermark_us is not None]
        is_over = last.ended
        following, before = last.sequence + 1, self.before
        if self.before and last.ended:
            # What was made again is all read; its own stream may still go on.
            assert self.begin is not None
            is_over = (last.watermark_us or 0) >= END_OF_TIME_US
            following, before = self.begin.next, False
        return replace(
            self,
            next=following,
            first=following,
            watermark_us=_AFTER_ALL_US if is_over else max([self.watermark_us, *told]),
            ended=is_over,
            before=before,
        )

    def at(self, place: InputPlace) -> InputPosition:
        """The position that a log tells."""
        return replace(
            self,
            next=place.next,
            first=place.first,
            watermark_us=LONG_AGO_US if place.watermark_us is None else place.watermark_us,
            ended=place.ended,
            before=place.before,
        )

    @property
    def place(self) -> InputPlace:
        """What a log is told."""
        watermark_us = None if self.watermark_us == LONG_AGO_US else self.watermark_us
        return InputPlace(self.next, self.first, watermark_us, self.ended, self.before)


@dataclass(frozen=True)
class Running:
    """A member, its plan, and its position in every stream of the plan.

    ``rows`` is what the round under way has read, ``part`` how far it is as a part of a join.
    """

    member: Member
    plan: LightPlan
    inputs: tuple[InputPosition, ...]
    rows: int = 0
    part: PartPlace | None = None

    @property
    def watermark_us(self) -> int:
        """How far its time has come: as far as that of the input which is furthest behind.

        That of a part's group which is behind the others counts, too.
        """
        offsets = () if self.part is None else self.part.offsets
        sides = [side for offset in offsets for side in (offset.left, offset.right)]
        told = (LONG_AGO_US if side.watermark_us is None else side.watermark_us for side in sides)
        return min([*(position.watermark_us for position in self.inputs), *told])

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to read."""
        is_open = self.part is not None and not self.part.closed
        return all(position.ended for position in self.inputs) and not is_open

    @property
    def has_time(self) -> bool:
        """Whether anything is known yet about how far its time has come."""
        return self.watermark_us != LONG_AGO_US

    def after(self, manifests: Sequence[Manifest]) -> Running:
        """The member once it has read these batches of its only channel."""
        rows = sum(manifest.rows for manifest in manifests)
        return self.reach((self.inputs[0].after(manifests),), rows)

    def reach(self, inputs: tuple[InputPosition, ...], rows: int) -> Running:
        """The member at these positions, where so many more rows have brought it."""
        return replace(self, inputs=inputs, rows=self.rows + rows)

    def at(self, place: MemberPlace) -> Running:
        """The member at a place that a log tells."""
        pairs = zip(self.inputs, place.inputs, strict=True)
        inputs = tuple(position.at(told) for position, told in pairs)
        return replace(self, inputs=inputs, part=place.part or self.part)

    def counted(self, rows_out: int) -> Running:
        """The member after a round that is committed, in which it gave so many rows."""
        member = replace(
            self.member,
            rows_in=self.member.rows_in + self.rows,
            rows_out=self.member.rows_out + rows_out,
        )
        return replace(self, member=member, rows=0)

    def reads(self) -> dict[str, int]:
        """The next batch of every channel that it reads now."""
        return _least((position.channel, position.next) for position in self.inputs)

    def needs(self) -> dict[str, int]:
        """The oldest batch of every channel that it still needs."""
        return _least((position.channel, position.first) for position in self.inputs)


def _least(places: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The least place in every channel: a stream may be joined with itself."""
    found: dict[str, int] = {}
    for channel, number in places:
        found[channel] = min(number, found.get(channel, number))
    return found


def begin_running(
    member: Member,
    plan: LightPlan,
    begins: Mapping[str, InputStart],
    channel_of: Callable[[str], Channel],
) -> Running:
    """A member that nobody has run before, at the beginning of what it is to see."""
    inputs = tuple(
        _begin(stream, begins.get(stream), channel_of(stream)) for stream in plan.streams
    )
    part = None
    if isinstance(plan, JoinPlan) and plan.part is not None:
        owners = GroupTable.first(plan.part.spread)
        part = PartPlace.first(owners, plan.part.number, join_offset(inputs))
    return Running(member, plan, inputs, part=part)


def join_offset(inputs: Sequence[InputPosition]) -> JoinOffset:
    """The positions of both sides as the kernel knows them."""
    left, right = (
        SideOffset(
            position.first,
            position.next,
            None if position.watermark_us == LONG_AGO_US else position.watermark_us,
        )
        for position in inputs
    )
    return JoinOffset(left, right)


def _begin(stream: str, begin: InputStart | None, channel: Channel) -> InputPosition:
    if begin is None:
        oldest = channel.oldest()
        return InputPosition(stream, begin, oldest, oldest)
    if begin.before is not None:
        return InputPosition(stream, begin, 0, 0, before=True)
    position = InputPosition(stream, begin, begin.next, begin.next)
    last = channel.manifest(begin.next - 1) if begin.next else None
    # What the batch before tells of the time, in case no other one comes.
    return position if last is None else position.after([last])


def places_of(members: Iterable[Running]) -> tuple[MemberPlace, ...]:
    """Where members stand, those at the same place together."""
    found: dict[MemberPlace, list[int]] = defaultdict(list)
    for running in members:
        inputs = tuple(position.place for position in running.inputs)
        where = MemberPlace(inputs, (), running.rows, running.part)
        found[where].append(running.member.number)
    return tuple(replace(where, members=tuple(numbers)) for where, numbers in found.items())
