"""Committing to a channel: once, in order, by one owner at a time; freeing what all have read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock

import pyarrow as pa

from penstock.channels.channel import Channel
from penstock.channels.durable import (
    RESTORE,
    checksum,
    claim,
    claimed,
    create_once,
)
from penstock.channels.manifest import UNNUMBERED, ChannelFile, Manifest, file_name
from penstock.channels.reader_places import NeededBatches
from penstock.channels.shared_round import (
    SharedBatch,
    link_once,
    pack_rows,
)
from penstock.errors import RunError

RETAINED_BATCHES = 2_000
_UNREAD_ROWS_AT_MOST = 2_000_000
_MUST_STOP = "This writer is no longer the owner and must stop."


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
        self._needed = NeededBatches(channel.folder)
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
                self._known = {manifest.sequence: manifest.rows for manifest in self.channel.kept()}
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
        latest: Mapping[str, int] | None = None,
    ) -> Manifest:
        """Makes a batch visible and gives its manifest; gives the old one if it already was.

        ``latest`` are the latest times of its rows by column.
        """
        last = self._last
        if last is not None and batch_id <= last.batch_id:
            return last
        self.check_owner()
        manifest = Manifest(
            self._next,
            self.epoch,
            batch_id,
            tuple(files),
            watermark_us,
            ended,
            arrived_s,
            writer_state or {},
            _latest({} if last is None else last.latest, latest or {}),
        )
        entry = self.channel.entry(manifest.sequence)
        return self._committed(manifest, create_once(entry, manifest.to_json()))

    def compose(
        self,
        batch_id: int,
        rows: pa.Table,
        watermark_us: int | None,
        ended: bool,
        arrived_s: float | None,
        latest: Mapping[str, int],
    ) -> SharedBatch:
        """A batch for a file that is shared with other channels; :meth:`commit_shared` follows."""
        body = pack_rows(rows)
        name = file_name(batch_id, self.epoch, 0)
        file = ChannelFile(name, rows.num_rows, len(body), checksum(memoryview(body)))
        before = {} if self._last is None else self._last.latest
        manifest = Manifest(
            UNNUMBERED,
            self.epoch,
            batch_id,
            (file,) if rows.num_rows else (),
            watermark_us,
            ended,
            arrived_s,
            latest=_latest(before, latest),
        )
        return SharedBatch(self.channel.folder.name, manifest.to_json(), body)

    def commit_shared(self, path: Path, batch: SharedBatch) -> Manifest:
        """Makes a batch visible that lies in the shared file at ``path``."""
        self.check_owner()
        manifest = Manifest.from_json(batch.manifest, str(path)).within(self._next)
        return self._committed(manifest, link_once(path, self.channel.entry(manifest.sequence)))

    @property
    def _next(self) -> int:
        return 0 if self._last is None else self._last.sequence + 1

    def _committed(self, manifest: Manifest, is_made: bool) -> Manifest:
        sequence, batch_id = manifest.sequence, manifest.batch_id
        if not is_made:
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
        needed_from = self._needed.first()
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

    @property
    def is_held_back(self) -> bool:
        """Whether the slowest reader is so far behind that nothing more should come."""
        # Asked for in every round: who has read what is looked up only where it can matter.
        if sum(self._kept.values()) <= _UNREAD_ROWS_AT_MOST:
            return False
        return sum(self.unread()) > _UNREAD_ROWS_AT_MOST

    def unread(self) -> list[int]:
        """The rows of each batch that the slowest reader has not read yet; none without readers."""
        needed_from = self._needed.readers.first_needed()
        if needed_from is None:
            return []
        kept = tuple(self._kept.items())
        return [rows for sequence, rows in kept if sequence >= needed_from]


def _latest(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """The later of both for every column."""
    columns = {*before, *more}
    return {name: max(times[name] for times in (before, more) if name in times) for name in columns}
