"""A channel on disk: what lies where, reading batches, and how far readers have come.

Layout of a channel's folder::

    epoch-N            the newest writer's epoch; older writers are refused
    floor              the oldest batch that is kept; what lies below does not count
    head               the newest batch, or one a little older: up to there none may be missing
    log/00000000.json  one manifest a batch, made visible by one atomic link; a small batch may
                       lie beside it, in one file with those of other channels
    data/              the batches' Parquet files
    readers/NAME       the next sequence number each reader reads
    windows/NAME       the oldest one it may read again, for readers that do

Appending costs the same however long the log is; a reader opens only what is new.
"""

from __future__ import annotations

import os
import re
import shutil
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.channels.durable import (
    create_once,
    move_number,
    read_number,
    sealed,
    write_number,
    write_whole,
)
from penstock.channels.manifest import ChannelFile, Manifest
from penstock.channels.reader_places import NeededBatches
from penstock.channels.shared_round import (
    read_entry,
    read_shared_rows,
)
from penstock.errors import RunError
from penstock.model.ids import ReaderId
from penstock.model.schema import checked_name

_ENTRY = re.compile(r"(\d{8,})\.json")
_FILE = re.compile(r"(\d{10,})-\d+-\d+\.parquet")
_STAGING = re.compile(r"\.staging-(\d+)-\d+")


@dataclass(frozen=True)
class Channel:
    """The channel kept in ``folder``."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Channel:
        """The channel in ``folder``, made if there is none."""
        for part in ("log", "data", "readers", "windows"):
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
        found = read_entry(path, self.folder.name)
        if found is None:
            return None
        text, is_shared = found
        manifest = Manifest.from_json(text, str(path))
        return manifest.within(sequence) if is_shared else manifest

    def rows_of(self, file: ChannelFile, columns: list[str]) -> pa.Table:
        """These columns of the rows in a file of a batch."""
        if file.inside is None:
            return pq.read_table(self.data / file.name, columns=columns)
        return self._shared_rows(file.inside, file).select(columns)

    def path_of(self, file: ChannelFile) -> Path:
        """Where the rows of a file lie as Parquet; those in a shared file are put there first."""
        path = self.data / file.name
        if file.inside is not None and not path.exists():
            rows = self._shared_rows(file.inside, file)
            write_whole(path, lambda temporary: pq.write_table(rows, temporary, compression="lz4"))
        return path

    def _shared_rows(self, sequence: int, file: ChannelFile) -> pa.Table:
        return read_shared_rows(self.entry(sequence), self.folder.name, file.check)

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
        move_number(self.folder / "head", sequence)

    def last(self) -> Manifest | None:
        """The newest manifest, or None in an empty channel."""
        kept = self.sequences()
        return self.manifest(kept[-1]) if kept else None

    def kept(self) -> Iterator[Manifest]:
        """All manifests still kept, in order, opened one by one."""
        return (
            manifest for manifest in map(self.manifest, self.sequences()) if manifest is not None
        )

    def oldest(self) -> int:
        """The number of the oldest batch still kept; 0 in an empty channel."""
        return min(self.sequences(), default=0)

    def first_since(self, time_s: float) -> int:
        """The number of the first batch committed at that time or later: the next if none was.

        Logarithmic in what is kept, apart from listing it.
        """
        kept = self.sequences()
        at = bisect_left(kept, time_s, key=self.committed_s)
        if at < len(kept):
            return kept[at]
        return kept[-1] + 1 if kept else 0

    def committed_s(self, sequence: int) -> float:
        """When a batch was committed, by the clock of whoever wrote it; 0 if it is gone."""
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

    def register(self, reader: ReaderId) -> bool:
        """Makes ``reader`` one for whom data is kept; whether it was not one before.

        One already known keeps its place.
        """
        return create_once(self._reader(reader), sealed(0))

    def has_reader(self, reader: ReaderId) -> bool:
        """Whether data is kept for ``reader``."""
        return self._reader(reader).exists()

    def forget(self, reader: ReaderId) -> None:
        """Keeps nothing for ``reader`` any more."""
        self._reader(reader).unlink(missing_ok=True)
        self._window(reader).unlink(missing_ok=True)

    def advance(self, reader: ReaderId, sequence: int) -> None:
        """Records that ``reader`` needs nothing before ``sequence`` any more."""
        # An older place only keeps data for longer.
        move_number(self._reader(reader), sequence)

    def keep_window(self, reader: ReaderId, sequence: int) -> None:
        """Records that ``reader`` may read the batches from ``sequence`` on again.

        What it has read of them does not count as unread, so it holds nobody back.
        """
        self._window(reader).parent.mkdir(exist_ok=True)
        move_number(self._window(reader), sequence)

    def needed_from(self) -> int | None:
        """The first batch that some reader still needs; None when there is no reader."""
        return NeededBatches(self.folder).first()

    @property
    def is_read(self) -> bool:
        """Whether data is kept for anybody."""
        # Asked in every round: no paths are made for nothing.
        names = os.listdir(self.folder / "readers")  # noqa: PTH208
        return any(not name.startswith(".") for name in names)

    def _reader(self, name: ReaderId) -> Path:
        return self.folder / "readers" / checked_name(name, "reader")

    def _window(self, name: ReaderId) -> Path:
        return self.folder / "windows" / checked_name(name, "reader")

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
