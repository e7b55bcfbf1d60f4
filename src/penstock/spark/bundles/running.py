"""A member of a bundle at work: what it computes, and how far it has come in its input."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.channels.channel import Channel
from penstock.channels.manifest import END_OF_TIME_US, Manifest
from penstock.kernels.window_plan import WindowPlan
from penstock.kernels.window_state import LONG_AGO_US
from penstock.model.beginnings import InputStart
from penstock.spark.bundles.bundle_log import InputPlace, Member

_AFTER_ALL_US = 2**62
"""Later than the end of any window."""


@dataclass(frozen=True)
class Running:
    """A member, its plan, and its place.

    ``next`` is the first batch it has not read: of the channel ``begin.before`` while ``before``
    holds, of its stream's channel afterwards. ``rows`` is what the round under way has read.
    """

    member: Member
    plan: WindowPlan
    begin: InputStart | None
    next: int
    watermark_us: int = LONG_AGO_US
    ended: bool = False
    before: bool = False
    rows: int = 0

    @property
    def has_time(self) -> bool:
        """Whether anything is known yet about how far its time has come."""
        return self.watermark_us != LONG_AGO_US

    @property
    def channel(self) -> str:
        """The name of the channel that its next batch lies in."""
        if not self.before:
            return self.plan.stream
        assert self.begin is not None and self.begin.before is not None
        return self.begin.before

    def after(self, manifests: Sequence[Manifest]) -> Running:
        """The member once it has read these batches of its channel."""
        last = manifests[-1]
        rows = self.rows + sum(manifest.rows for manifest in manifests)
        given = (manifest.watermark_us for manifest in manifests)
        told = [watermark_us for watermark_us in given if watermark_us is not None]
        is_over = last.ended
        following, before = last.sequence + 1, self.before
        if self.before and last.ended:
            # What was made again is all read; its own stream may still go on.
            assert self.begin is not None
            is_over = (last.watermark_us or 0) >= END_OF_TIME_US
            following, before = self.begin.next, False
        watermark_us = _AFTER_ALL_US if is_over else max([self.watermark_us, *told])
        return replace(
            self,
            next=following,
            watermark_us=watermark_us,
            ended=is_over,
            before=before,
            rows=rows,
        )

    def at(self, place: InputPlace) -> Running:
        """The member at a place that a log tells."""
        watermark_us = LONG_AGO_US if place.watermark_us is None else place.watermark_us
        return replace(
            self,
            next=place.next,
            watermark_us=watermark_us,
            ended=place.ended,
            before=place.before,
        )

    def counted(self, rows_out: int) -> Running:
        """The member after a round that is committed, in which it gave so many rows."""
        member = replace(
            self.member,
            rows_in=self.member.rows_in + self.rows,
            rows_out=self.member.rows_out + rows_out,
        )
        return replace(self, member=member, rows=0)


def begin_running(
    member: Member, plan: WindowPlan, begin: InputStart | None, channel: Channel
) -> Running:
    """A member that nobody has run before, at the beginning of what it is to see."""
    if begin is None:
        return Running(member, plan, begin, channel.oldest())
    if begin.before is not None:
        return Running(member, plan, begin, 0, before=True)
    running = Running(member, plan, begin, begin.next)
    last = channel.manifest(begin.next - 1) if begin.next else None
    # What the batch before tells of the time, in case no other one comes.
    return running if last is None else replace(running.after([last]), rows=0)


def places_of(members: Iterable[Running]) -> tuple[InputPlace, ...]:
    """Where members stand, those at the same place together."""
    found: dict[tuple[int, int, bool, int, bool], list[int]] = defaultdict(list)
    for running in members:
        key = (running.next, running.watermark_us, running.ended, running.rows, running.before)
        found[key].append(running.member.number)
    return tuple(
        InputPlace(
            following,
            None if watermark_us == LONG_AGO_US else watermark_us,
            ended,
            tuple(numbers),
            rows,
            before,
        )
        for (following, watermark_us, ended, rows, before), numbers in found.items()
    )
