"""What a part of a join does around a round: takes groups, gives groups, says what it has taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.channels.group_files import GroupFiles
from penstock.kernels.window_join import JoinOffset
from penstock.kernels.window_join.part_place import GroupRelease, PartPlace
from penstock.kernels.window_join.part_records import read_release, release_record
from penstock.model.parts import Part


@dataclass
class PartRounds:
    """The groups of one part, as it sees them from its node.

    What it takes and gives is recorded with its rounds, and only there; files tell others of it
    afterwards, as often as it takes.
    """

    part: Part
    files: GroupFiles
    clock: Callable[[], float] = time.time
    _published: set[GroupRelease] = field(default_factory=set)
    _rounds: int = 0
    _released_s: dict[int, float] = field(default_factory=dict)
    _pauses: dict[int, float] = field(default_factory=dict)

    @property
    def must_tell(self) -> bool:
        """Whether those who read what it gives may not know its time yet: in its first round here.

        Its former owner may have died between recording that it took a group, whose time is behind,
        and saying so.
        """
        return self._rounds == 0

    def must_take(self, place: PartPlace) -> bool:
        """Whether somebody has given it groups that it does not have yet: nobody joins those."""
        return not place.closed and any(place.unknown(release) for release in self._given())

    def begin(self, place: PartPlace) -> PartPlace:
        """The place with the groups that have been given to it, before a round.

        All that ``place`` says is recorded by now, and what the rounds here have given is out.
        """
        self.publish(place)
        owners = self.files.owners(self.part.spread)
        if not self.must_tell:
            self._settle(place)
        self._rounds += 1
        place = place.let_go(owners)
        if owners.moving_to(self.part.number) <= place.groups:
            return place
        given = self._given()
        self._released_s |= {
            group: release.released_s for release in given for group in place.unknown(release)
        }
        return place.take(given)

    def tell_again(self) -> None:
        """Goes on as if nothing had been told here."""
        self._rounds = 0

    def publish(self, place: PartPlace) -> None:
        """Lets others have what it has given, once that is recorded; all it has joined is out."""
        for group in place.groups & self._released_s.keys():
            self._pauses[group] = max(0.0, self.clock() - self._released_s.pop(group))
        for release in place.held:
            if release not in self._published:
                self.files.give(release.target, release.name, release_record(release))
                self._published.add(release)
        self._published &= set(place.held)

    def _given(self) -> list[GroupRelease]:
        return [read_release(record) for record in self.files.given(self.part.number)]

    def _settle(self, place: PartPlace) -> None:
        """Says of groups that it has taken them, and that whoever gave them can let them go."""
        while arrived := place.arrived(owners := self.files.owners(self.part.spread)):
            if self.files.propose(owners.settled(arrived, self._pauses)):
                self._pauses.clear()
        for release in self._given():
            if not place.unknown(release):
                self.files.forget(self.part.number, release.name)

    def end(self, place: PartPlace, end: JoinOffset, is_over: bool) -> PartPlace:
        """The place after a round that comes to ``end``: without groups that are another's now.

        Once it has read everything and has all that it is to have, it closes.
        """
        owners = self.files.owners(self.part.spread)
        place = place.release(owners, self.clock())
        if not is_over or not place.has_all(owners, end):
            return place
        number = self.part.number
        if number in owners.closed or self.files.propose(owners.closing(number)):
            return place.close()
        return place
