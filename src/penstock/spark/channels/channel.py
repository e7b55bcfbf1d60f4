"""A channel on disk: committing batches, reading them, and freeing what everybody has read.

Layout of a channel's folder::

    epoch            the newest writer's epoch; older writers are refused
    log/00000000.json  one manifest a batch, made visible by one atomic link
    data/              the batches' Parquet files
    readers/NAME       the next sequence number each reader needs

Appending costs the same however long the log is; a reader lists only what is new.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.spark.channels.durable import create_once, read_text, write_text
from penstock.spark.channels.manifest import ChannelFile, Manifest
from penstock.errors import RunError
from penstock.model.schema import checked_name

_ENTRY = re.compile(r"(\d{8,})\.json")


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
        names = (_ENTRY.fullmatch(name) for name in os.listdir(self.folder / "log"))
        return sorted(int(found.group(1)) for found in names if found)

    def manifests(self, start: int, stop: int) -> list[Manifest]:
        """The manifests numbered ``start`` to ``stop - 1``; raises when one is missing."""
        found = []
        for sequence in range(start, stop):
            manifest = self.manifest(sequence)
            if manifest is None:
                raise RunError(
                    f"the manifest {self.entry(sequence)} is missing",
                    hint="A reader still needs it. Restore it, or start afresh with --fresh.",
                )
            found.append(manifest)
        return found

    def last(self) -> Manifest | None:
        """The newest manifest, or None in an empty channel."""
        kept = self.sequences()
        return self.manifest(kept[-1]) if kept else None

    def newer(self, start: int) -> list[Manifest]:
        """All manifests from ``start`` on that are there already."""
        found = []
        while (manifest := self.manifest(start + len(found))) is not None:
            found.append(manifest)
        return found

    def register(self, reader: str) -> None:
        """Makes ``reader`` one for whom data is kept; one already known keeps its place."""
        create_once(self._reader(reader), "0")

    def advance(self, reader: str, sequence: int) -> None:
        """Records that ``reader`` needs nothing before ``sequence`` any more."""
        write_text(self._reader(reader), str(sequence))

    def needed_from(self) -> int:
        """The first batch that some reader still needs; 0 when nobody reads."""
        places = [
            int(text)
            for name in os.listdir(self.folder / "readers")
            if not name.startswith(".") and (text := read_text(self.folder / "readers" / name))
        ]
        return min(places, default=0)

    def _reader(self, name: str) -> Path:
        return self.folder / "readers" / checked_name(name, "reader")

    def free(self) -> int:
        """Deletes batches that every reader is past, always keeping the newest; how many."""
        needed = self.needed_from()
        done = [one for one in self.sequences()[:-1] if one < needed]
        for sequence in done:
            manifest = self.manifest(sequence)
            for file in manifest.files if manifest else ():
                (self.data / file.name).unlink(missing_ok=True)
            self.entry(sequence).unlink(missing_ok=True)
        return len(done)

    def drop(self) -> None:
        """Deletes the channel with everything in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Writer:
    """The one writer of a channel in its epoch.

    Committing the same batch twice is a no-op; once a writer with a higher epoch has opened the
    channel, commits of this one are refused.
    """

    def __init__(self, channel: Channel, epoch: int) -> None:
        self.channel = channel
        self.epoch = epoch
        self._claim()
        self._last = channel.last()

    def _claim(self) -> None:
        current = self._current_epoch()
        if current > self.epoch:
            raise self._refused(current)
        write_text(self.channel.folder / "epoch", str(self.epoch))

    def _current_epoch(self) -> int:
        return int(read_text(self.channel.folder / "epoch") or 0)

    def _refused(self, current: int) -> RunError:
        return RunError(
            f"channel {self.channel.folder.name} belongs to a newer writer "
            f"(epoch {current}, this one has {self.epoch})",
            hint="This writer is no longer the owner and must stop.",
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
    ) -> Manifest:
        """Makes a batch visible and gives its manifest; gives the old one if it already was."""
        last = self._last
        if last is not None and batch_id <= last.batch_id:
            return last
        if (current := self._current_epoch()) > self.epoch:
            raise self._refused(current)
        sequence = 0 if last is None else last.sequence + 1
        manifest = Manifest(sequence, self.epoch, batch_id, tuple(files), watermark_us, ended)
        manifest = replace(manifest, writer_state=writer_state or {})
        if not create_once(self.channel.entry(sequence), manifest.to_json()):
            raise self._refused(max(self._current_epoch(), self.epoch))
        self._last = manifest
        self.channel.free()
        return manifest
