"""The log of a bundle: what its members have done, a round an entry, and who took which away.

Layout of a bundle's folder::

    owner                    locked by the process that writes here, as long as it lives
    log/0000000012.round     one round of all members: rows out, changes of state, places reached
    snapshots/0000000010     all state and all places after that round

One atomic ``link`` makes a round visible for all its members at once. The number of an entry can
be taken once. Whoever takes a member over from an owner that does not answer takes the next number
with a *fence* for that member: the owner's next round fails on the number, sees the fence, and goes
on without the member. So a member's rounds end at one entry, the same one for everybody who looks.

Cost of a round: one file, one fsync, whatever the number of members.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.channels.durable import RESTORE
from penstock.errors import RunError
from penstock.kernels.window_join.part_place import PartPlace
from penstock.kernels.window_join.part_records import place_record, read_place
from penstock.model.ids import PartId
from penstock.spark.bundles.container import Unpacked, pack, write_once

_ENTRY = re.compile(r"(\d{10})\.round")


@dataclass(frozen=True)
class Member:
    """A fragment in a bundle: its number there, its name, and by which epoch it is owned.

    ``rows_in`` and ``rows_out`` count what it has read and given, with all its owners so far;
    ``base`` is above the numbers of all batches that former owners gave.
    """

    number: int
    name: PartId
    epoch: int
    rows_in: int = 0
    rows_out: int = 0
    base: int = 0

    def batch_id(self, sequence: int) -> int:
        """The number of what it gives by an entry: higher with every entry and every owner."""
        return self.base + sequence


@dataclass(frozen=True)
class InputPlace:
    """How far a member has come in one of its inputs: the next batch, and the time it tells.

    ``first`` is the oldest batch that it still needs. ``before`` says that the next batch lies in
    the channel of rows made again.
    """

    next: int
    first: int
    watermark_us: int | None
    ended: bool
    before: bool = False


@dataclass(frozen=True)
class MemberPlace:
    """Where some members stand in their inputs, which they have in the order of their plans.

    ``rows`` is how many they read in the round that brought them there, ``part`` how far the groups
    are that a part of a join owns.
    """

    inputs: tuple[InputPlace, ...]
    members: tuple[int, ...]
    rows: int = 0
    part: PartPlace | None = None

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> MemberPlace:
        """The place that :meth:`record` has made a record of.

        Logs of before joins were light have members with one input, told beside the members.
        """
        given = record.get("inputs") or [
            {key: record[key] for key in ("next", "watermark_us", "ended", "before")}
            | {"first": record["next"]}
        ]
        inputs = tuple(InputPlace(**place) for place in given)
        told = record.get("part")
        part = None if told is None else read_place(told)
        return cls(inputs, tuple(record["members"]), record["rows"], part)

    def record(self) -> dict[str, Any]:
        """The place as plain values."""
        made = asdict(replace(self, part=None))
        if self.part is not None:
            made["part"] = place_record(self.part)
        return made


@dataclass(frozen=True)
class Entry:
    """What one entry of the log says.

    ``adopted``: members that are here from now on; their state so far is among ``states``, which
    are tables of partial aggregates. ``results`` are the rows of the members in ``gives``, by
    number; ``tap_rows`` those of streams inside members that others share, which ``tapped`` names.
    ``released``: members that are not here from now on, by their owner or by whoever
    fenced them. ``arrived_s``: when the oldest of the rows it read entered the system.
    """

    places: tuple[MemberPlace, ...] = ()
    adopted: tuple[Member, ...] = ()
    released: tuple[int, ...] = ()
    gives: tuple[int, ...] = ()
    results: tuple[pa.Table, ...] = ()
    states: tuple[pa.Table, ...] = ()
    arrived_s: float | None = None
    tapped: tuple[tuple[int, str], ...] = ()
    tap_rows: tuple[pa.Table, ...] = ()

    def parts(self) -> list[bytes | pa.Buffer]:
        """The entry as the parts of its file."""
        header = {
            "places": [place.record() for place in self.places],
            "adopted": [asdict(member) for member in self.adopted],
            "released": self.released,
            "gives": self.gives,
            "states": len(self.states),
            "arrived_s": self.arrived_s,
            "tapped": self.tapped,
        }
        return pack(header, [*self.results, *self.states, *self.tap_rows])

    @classmethod
    def read(cls, path: Path) -> Entry:
        """The entry in a file; a damaged one is refused by its name."""
        file = Unpacked(path)
        head: dict[str, Any] = file.header
        given = len(head["gives"])
        # Logs of before streams were shared have none.
        tapped = tuple((number, stream) for number, stream in head.get("tapped", ()))
        own = given + head["states"]
        return cls(
            places=tuple(map(MemberPlace.from_record, head["places"])),
            adopted=tuple(Member(**member) for member in head["adopted"]),
            released=tuple(head["released"]),
            gives=tuple(head["gives"]),
            results=tuple(file.table(at) for at in range(given)),
            states=tuple(file.table(given + at) for at in range(head["states"])),
            arrived_s=head["arrived_s"],
            tapped=tapped,
            tap_rows=tuple(file.table(own + at) for at in range(len(tapped))),
        )


@dataclass(frozen=True)
class Given:
    """What a member gave last: the number of the batch, its rows, when their oldest came in.

    ``tapped`` are the rows of streams inside it that others share.
    """

    batch_id: int
    rows: pa.Table
    arrived_s: float | None
    tapped: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True)
class Handed:
    """A member whose rounds in a log have ended: how far it came, and its state there.

    The member is as its next owner takes it on. ``tables`` are the states of all members
    of the log, of which :func:`rows_of` tells its own. ``last`` is what it gave last, as far as the
    log still has it: nobody can tell whether that was delivered.
    """

    member: Member
    place: MemberPlace | None
    tables: tuple[pa.Table, ...]
    last: Given | None = None


@dataclass
class Known:
    """What a log comes to: who is in it, how far each is, the state of all, and who has left."""

    members: dict[int, Member] = field(default_factory=dict)
    places: dict[int, MemberPlace] = field(default_factory=dict)
    states: list[pa.Table] = field(default_factory=list)
    given: dict[int, Given] = field(default_factory=dict)
    handed: list[Handed] = field(default_factory=list)

    def take(self, sequence: int, entry: Entry) -> None:
        """Goes on by the entry with this number."""
        self.members |= {member.number: member for member in entry.adopted}
        for place in entry.places:
            for number in place.members:
                self.places[number] = place
                self._count(number, rows_in=place.rows)
        tapped: dict[int, dict[str, pa.Table]] = {}
        for (number, stream), rows in zip(entry.tapped, entry.tap_rows, strict=True):
            tapped.setdefault(number, {})[stream] = rows
        for number, rows in zip(entry.gives, entry.results, strict=True):
            if number in self.members:
                batch_id = self.members[number].batch_id(sequence)
                taps = tapped.get(number, {})
                self.given[number] = Given(batch_id, rows, entry.arrived_s, taps)
                self._count(number, rows_out=rows.num_rows)
        self.states += entry.states
        for number in entry.released:
            if number in self.members:
                self.handed.append(self.hand_over(self.members.pop(number), sequence))

    def _count(self, number: int, rows_in: int = 0, rows_out: int = 0) -> None:
        member = self.members.get(number)
        if member is not None and (rows_in or rows_out):
            self.members[number] = replace(
                member, rows_in=member.rows_in + rows_in, rows_out=member.rows_out + rows_out
            )

    def hand_over(self, member: Member, sequence: int) -> Handed:
        """What somebody else needs to go on with a member, after the entry with this number."""
        place, last = self.places.get(member.number), self.given.get(member.number)
        taken_on = replace(member, base=member.batch_id(sequence) + 1)
        return Handed(taken_on, place, tuple(self.states), last)

    def find(self, name: PartId, epoch: int) -> Member | None:
        """The member of this name and epoch, if it is here."""
        wanted = (member for member in self.members.values() if member.name == name)
        return next((member for member in wanted if member.epoch == epoch), None)

    def find_handed(self, name: PartId, epoch: int) -> Handed | None:
        """The member of this name and epoch as it left last, if it was here."""
        for handed in reversed(self.handed):
            if (handed.member.name, handed.member.epoch) == (name, epoch):
                return handed
        return None


@dataclass(frozen=True)
class BundleLog:
    """The log kept in ``folder``: written by one process, read by all, fenced by all."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> BundleLog:
        """The log in ``folder``, made if there is none."""
        for part in ("log", "snapshots"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        return cls(folder)

    def path(self, sequence: int) -> Path:
        """The file of an entry."""
        return self.folder / "log" / f"{sequence:010d}.round"

    def append(self, sequence: int, entry: Entry) -> int | None:
        """Makes the entry the one with this number; its bytes, or None if the number is taken."""
        parts = entry.parts()
        return sum(map(len, parts)) if write_once(self.path(sequence), parts) else None

    def entry(self, sequence: int) -> Entry | None:
        """The entry with this number; None when it is not there."""
        path = self.path(sequence)
        return Entry.read(path) if path.exists() else None

    def sequences(self) -> list[int]:
        """The numbers of all entries that are kept, in order."""
        # By a pattern: a log of which nobody needs anything may have been removed meanwhile.
        names = (_ENTRY.fullmatch(path.name) for path in (self.folder / "log").glob("*.round"))
        return sorted(int(name.group(1)) for name in names if name)

    def entries(self, start: int) -> Iterator[tuple[int, Entry]]:
        """The entries from ``start`` on, opened one by one."""
        while (entry := self.entry(start)) is not None:
            yield start, entry
            start += 1

    def load(self) -> tuple[int, Known]:
        """The next free number, and what the log comes to before it."""
        snapshots = sorted((self.folder / "snapshots").glob("[0-9]*"))
        known, start = Known(), 0
        if snapshots:
            start = int(snapshots[-1].name) + 1
            known.take(start - 1, Entry.read(snapshots[-1]))
        start = self.go_on(start, known)
        later = [sequence for sequence in self.sequences() if sequence >= start]
        if later:
            raise RunError(
                f"the entry {self.path(start)} is missing, {self.path(later[0])} is there",
                hint=RESTORE,
            )
        return start, known

    def go_on(self, start: int, known: Known) -> int:
        """Adds the entries from ``start`` on to what is known; the next free number."""
        for sequence, entry in self.entries(start):
            known.take(sequence, entry)
            start = sequence + 1
        return start

    def has_passed(self, start: int) -> bool:
        """Whether the entry with this number is in a snapshot, and may be gone."""
        return any(int(path.name) >= start for path in (self.folder / "snapshots").glob("[0-9]*"))

    def snapshot(self, sequence: int, entry: Entry) -> int:
        """Keeps what the log comes to after an entry in place of earlier snapshots; its bytes."""
        parts = entry.parts()
        write_once(self.folder / "snapshots" / f"{sequence:010d}", parts)
        for path in sorted((self.folder / "snapshots").glob("[0-9]*"))[:-1]:
            path.unlink(missing_ok=True)
        return sum(map(len, parts))

    def free(self, before: int) -> None:
        """Deletes the entries before a number."""
        for sequence in self.sequences():
            if sequence >= before:
                return
            self.path(sequence).unlink(missing_ok=True)


@dataclass
class FormerLog:
    """Somebody else's log, read as far as it went when last looked at.

    Looking again costs what has been added since.
    """

    log: BundleLog
    _start: int = 0
    _known: Known = field(default_factory=Known)

    def look(self) -> Known:
        """What the log comes to by now."""
        if self._start == 0 or self.log.has_passed(self._start):
            self._start, self._known = self.log.load()
        else:
            self._start = self.log.go_on(self._start, self._known)
        return self._known

    def fence(self, name: PartId, epoch: int) -> Handed | None:
        """Ends a member's rounds here, unless they have ended; how far it came, and its state.

        None if it never was here by that epoch. Afterwards no round of its former owner can
        include it. Doing it again gives the same.
        """
        while True:
            known = self.look()
            member = known.find(name, epoch)
            if member is None:
                return known.find_handed(name, epoch)
            self.log.append(self._start, Entry(released=(member.number,)))


def rows_of(number: int, states: pa.Table) -> pa.Table:
    """What is in a table of one member's state."""
    return states.filter(pc.equal(states.column("member"), number))
