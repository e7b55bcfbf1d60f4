"""A channel on disk: committing batches, reading them, and freeing what everybody has read.

Layout of a channel's folder::

    epoch-N            the newest writer's epoch; older writers are refused
    floor              the oldest batch that is kept; what lies below does not count
    head               the newest batch, or one a little older: up to there none may be missing
    log/00000000.json  one manifest a batch, made visible by one atomic link
    data/              the batches' Parquet files
    readers/NAME       the next sequence number each reader needs

Appending costs the same however long the log is; a reader opens only what is new.
"""

from __future__ import annotations

import re
import shutil
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from penstock.errors import RunError
from penstock.model.schema import checked_name
from penstock.spark.channels.durable import (
    RESTORE,
    claim,
    claimed,
    create_once,
    read_number,
    read_text,
    sealed,
    write_number,
)
from penstock.spark.channels.manifest import ChannelFile, Manifest

_ENTRY = re.compile(r"(\d{8,})\.json")
_FILE = re.compile(r"(\d{10,})-\d+-\d+\.parquet")
_STAGING = re.compile(r"\.staging-(\d+)-\d+")
RETAINED_BATCHES = 2_000
_MUST_STOP = "This writer is no longer the owner and must stop."


@dataclass(frozen=True)
class Channel:
    """The channel kept in ``folder``."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Channel:
        """The channel in ``folder``, made if there is none."""
        for part in ("log", "data", "readers"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        return cls(folder)

    @property
    def data(self) -> Path:
        """Where the batches' files lie."""
        return self.folder / "data"

    def entry(self, sequence: int) -> Path:
        """The file of the manifest with this number."""
        return self.folder / "log" / f"{sequence:08d}.json"

    def manifest(self, sequence: int) -> Manifest | None:
        """The manifest with this number; None when it is not there."""
        path = self.entry(sequence)
        text = read_text(path)
        return None if text is None else Manifest.from_json(text, str(path))

    def sequences(self) -> list[int]:
        """The numbers of all manifests still kept, in order."""
        floor = read_number(self.folder / "floor") or 0
        names = (_ENTRY.fullmatch(path.name) for path in (self.folder / "log").iterdir())
        found = (int(name.group(1)) for name in names if name)
        return sorted(number for number in found if number >= floor)

    def manifests(self, start: int, stop: int) -> list[Manifest]:
        """The manifests numbered ``start`` to ``stop - 1``; raises when one is missing."""
        found = []
        for sequence in range(start, stop):
            manifest = self.manifest(sequence)
            if manifest is None:
                raise self._missing(sequence)
            found.append(manifest)
        return found

    def _missing(self, sequence: int) -> RunError:
        return RunError(
            f"the manifest {self.entry(sequence)} is missing",
            hint="A reader still needs it. Restore it, or start afresh with --fresh.",
        )

    def head(self) -> int:
        """The number up to which batches have been committed for certain; -1 if none has been."""
        found = read_number(self.folder / "head")
        return -1 if found is None else found

    def move_head(self, sequence: int) -> None:
        """Takes note that a batch has been committed."""
        # An older one only notices less.
        write_number(self.folder / "head", sequence, synced=False)

    def last(self) -> Manifest | None:
        """The newest manifest, or None in an empty channel."""
        kept = self.sequences()
        return self.manifest(kept[-1]) if kept else None

    def kept(self) -> Iterator[Manifest]:
        """All manifests still kept, in order, opened one by one."""
        return (one for one in map(self.manifest, self.sequences()) if one is not None)

    def oldest(self) -> int:
        """The number of the oldest batch still kept; 0 in an empty channel."""
        return min(self.sequences(), default=0)

    def first_since(self, time_s: float) -> int:
        """The number of the first batch committed at that time or later: the next if none was.

        Logarithmic in what is kept, apart from listing it.
        """
        kept = self.sequences()
        at = bisect_left(kept, time_s, key=self._committed_s)
        if at < len(kept):
            return kept[at]
        return kept[-1] + 1 if kept else 0

    def _committed_s(self, sequence: int) -> float:
        try:
            return self.entry(sequence).stat().st_mtime
        except FileNotFoundError:
            return 0.0  # Freed since: it was older than all that is left.

    def newer(self, start: int) -> Iterator[Manifest]:
        """The manifests from ``start`` on that are there already, opened one by one.

        Raises when the next one should be there: whoever waited for it would do so for ever.
        """
        while (manifest := self.manifest(start)) is not None:
            yield manifest
            start += 1
        if start <= self.head() and not self.entry(start).exists():
            raise self._missing(start)

    def register(self, reader: str) -> bool:
        """Makes ``reader`` one for whom data is kept; whether it was not one before.

        One already known keeps its place.
        """
        return create_once(self._reader(reader), sealed(0))

    def forget(self, reader: str) -> None:
        """Keeps nothing for ``reader`` any more."""
        self._reader(reader).unlink(missing_ok=True)

    def advance(self, reader: str, sequence: int) -> None:
        """Records that ``reader`` needs nothing before ``sequence`` any more."""
        # An older place only keeps data for longer.
        write_number(self._reader(reader), sequence, synced=False)

    def needed_from(self) -> int | None:
        """The first batch that some reader still needs; None when there is no reader."""
        places = [
            read_number(path)
            for path in (self.folder / "readers").iterdir()
            if not path.name.startswith(".")
        ]
        return min((one for one in places if one is not None), default=None)

    def _reader(self, name: str) -> Path:
        return self.folder / "readers" / checked_name(name, "reader")

    def free(self, kept: range, needed_from: int) -> range:
        """Deletes the batches among ``kept`` before ``needed_from``; those left.

        The newest always stays: it says where to go on.
        """
        start = max(kept.start, min(needed_from, kept.stop - 1))
        if start > kept.start:
            # First of all: a batch that a refused writer adds down there must not be taken for one.
            write_number(self.folder / "floor", start, synced=False)
        for sequence in range(kept.start, start):
            manifest = self.manifest(sequence)
            for file in manifest.files if manifest else ():
                (self.data / file.name).unlink(missing_ok=True)
            self.entry(sequence).unlink(missing_ok=True)
        return range(start, kept.stop)

    def tidy(self, epoch: int, batch_id: int) -> None:
        """Deletes what former writers left: files of batches up to this one that none refers to."""
        known = {file.name for manifest in self.kept() for file in manifest.files}
        for path in tuple(self.data.iterdir()):
            left, file = _STAGING.fullmatch(path.name), _FILE.fullmatch(path.name)
            if left and int(left.group(1)) < epoch:
                shutil.rmtree(path, ignore_errors=True)
            # A file of a later batch may be one that somebody is about to make visible.
            elif file and int(file.group(1)) <= batch_id and path.name not in known:
                path.unlink(missing_ok=True)

    def drop(self) -> None:
        """Deletes the channel with everything in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Writer:
    """The one writer of a channel in its epoch.

    Committing the same batch twice is a no-op; once a writer with a higher epoch has opened the
    channel, commits of this one are refused. What nobody has registered to read is kept for those
    who may only be about to, or, with ``retained_rows``, as far as the newest so many rows, in at
    most ``RETAINED_BATCHES`` batches: many have no rows at all.
    """

    def __init__(self, channel: Channel, epoch: int, retained_rows: int | None = None) -> None:
        self.channel = channel
        self.epoch = epoch
        self._retained_rows = retained_rows
        self._claim()
        self._last = channel.last()
        self._looking = Lock()
        self._known: dict[int, int] | None = None
        self._has_tidied = False
        self._check_last()

    @property
    def _kept(self) -> dict[int, int]:
        """The rows of every batch that is kept.

        Looked up when they are first asked for: a new owner has a batch to get out first.
        """
        with self._looking:
            if self._known is None:
                self._known = {one.sequence: one.rows for one in self.channel.kept()}
            return self._known

    def _check_last(self) -> None:
        """Raises if the newest batch is gone: its place would be given to another one."""
        newest = -1 if self._last is None else self._last.sequence
        head = self.channel.head()
        if newest < head:
            raise RunError(f"the manifest {self.channel.entry(head)} is missing", hint=RESTORE)

    def _claim(self) -> None:
        self.check_owner()
        claim(self.channel.folder, self.epoch)
        self.check_owner()

    def check_owner(self) -> None:
        """Raises if a newer writer has come."""
        current = claimed(self.channel.folder)
        if current > self.epoch:
            raise self._refused(current)

    def _refused(self, current: int) -> RunError:
        return RunError(
            f"channel {self.channel.folder.name} belongs to a newer writer "
            f"(epoch {current}, this one has {self.epoch})",
            hint=_MUST_STOP,
        )

    @property
    def last(self) -> Manifest | None:
        """The newest committed batch."""
        return self._last

    def commit(
        self,
        batch_id: int,
        files: Iterable[ChannelFile],
        watermark_us: int | None = None,
        ended: bool = False,
        writer_state: dict[str, object] | None = None,
        arrived_s: float | None = None,
    ) -> Manifest:
        """Makes a batch visible and gives its manifest; gives the old one if it already was."""
        last = self._last
        if last is not None and batch_id <= last.batch_id:
            return last
        self.check_owner()
        sequence = 0 if last is None else last.sequence + 1
        manifest = Manifest(
            sequence,
            self.epoch,
            batch_id,
            tuple(files),
            watermark_us,
            ended,
            arrived_s,
            writer_state or {},
        )
        if not create_once(self.channel.entry(sequence), manifest.to_json()):
            manifest = self._others(sequence, batch_id)
        # Again: whoever was replaced in between must not set back what others have freed.
        self.check_owner()
        self.channel.move_head(sequence)
        self._last = manifest
        self._kept[sequence] = manifest.rows
        self._free(sequence)
        if not self._has_tidied:
            self._has_tidied = True
            self.channel.tidy(self.epoch, batch_id)
        return manifest

    def _others(self, sequence: int, batch_id: int) -> Manifest:
        """The batch that another writer has put in this one's place, if it is the same batch.

        A former owner that was allowed to commit just before it was replaced may carry it out just
        after; the batch was planned before, so its rows are the same.
        """
        there = self.channel.manifest(sequence)
        if there is not None and there.batch_id == batch_id and there.epoch < self.epoch:
            return there
        raise RunError(
            f"batch {sequence} of channel {self.channel.folder.name} was written by another "
            f"writer (this one has epoch {self.epoch})",
            hint=_MUST_STOP,
        )

    def _free(self, newest: int) -> None:
        needed_from = self.channel.needed_from()
        if needed_from is None:
            needed_from = self._retained_from()
        oldest = min(self._kept)
        for sequence in range(
            oldest, self.channel.free(range(oldest, newest + 1), needed_from).start
        ):
            self._kept.pop(sequence, None)

    def _retained_from(self) -> int:
        if self._retained_rows is None:
            return 0
        rows = 0
        for count, (sequence, more) in enumerate(reversed(self._kept.items())):
            rows += more
            if rows > self._retained_rows or count == RETAINED_BATCHES:
                return sequence + 1
        return 0

    def unread(self) -> list[int]:
        """The rows of each batch that the slowest reader has not read yet; none without readers."""
        needed_from = self.channel.needed_from()
        if needed_from is None:
            return []
        kept = tuple(self._kept.items())
        return [rows for sequence, rows in kept if sequence >= needed_from]
