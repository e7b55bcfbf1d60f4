"""How far the readers of a channel have come: one small file each."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from penstock.channels.durable import read_number

# A file that is written twice in so short a time may look as if it was written once.
_TELLING_NS = 100_000_000


@dataclass
class ReaderPlaces:
    """The places of all readers, read again only where they have changed.

    Asked with every commit, so it must not cost a file for each of a thousand readers.
    """

    folder: Path
    _known: dict[str, tuple[int, int]] = field(default_factory=dict)

    def first_needed(self) -> int | None:
        """The first batch that some reader still needs; None when there is no reader."""
        looked_ns = time.time_ns()
        known, self._known = self._known, {}
        places = []
        try:
            with os.scandir(self.folder) as readers:
                for reader in readers:
                    if reader.name.startswith("."):
                        continue
                    place = self._place(reader, known.get(reader.name), looked_ns)
                    if place is not None:
                        places.append(place)
        except FileNotFoundError:
            return None
        return min(places, default=None)

    def _place(
        self, reader: os.DirEntry[str], known: tuple[int, int] | None, looked_ns: int
    ) -> int | None:
        try:
            written_ns = reader.stat().st_mtime_ns
        except FileNotFoundError:
            return None  # It was forgotten just now.
        place = (
            read_number(Path(reader.path)) if known is None or known[0] != written_ns else known[1]
        )
        if place is not None and looked_ns - written_ns > _TELLING_NS:
            self._known[reader.name] = (written_ns, place)
        return place


class NeededBatches:
    """Which batches of the channel in ``folder`` somebody needs: to read, or to read again."""

    def __init__(self, folder: Path) -> None:
        self.readers = ReaderPlaces(folder / "readers")
        self._windows = ReaderPlaces(folder / "windows")

    def first(self) -> int | None:
        """The first batch that is needed; None when there is no reader."""
        unread = self.readers.first_needed()
        if unread is None:
            return None
        again = self._windows.first_needed()
        return unread if again is None else min(unread, again)
