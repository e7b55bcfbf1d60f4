"""What lies unread in channels, counted once however many members ask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from penstock.channels.channel import Channel


@dataclass(frozen=True)
class Unread:
    """Rows of a channel that a member has not read, and when their oldest came in."""

    rows: int = 0
    since_s: float | None = None

    def __add__(self, other: Unread) -> Unread:
        known = [since_s for since_s in (self.since_s, other.since_s) if since_s is not None]
        return Unread(self.rows + other.rows, min(known, default=None))


@dataclass(frozen=True)
class _Batch:
    sequence: int
    rows: int
    arrived_s: float | None


@dataclass
class Backlog:
    """The newest batches of channels; each manifest is opened once."""

    channel_of: Callable[[str], Channel]
    _batches: dict[str, deque[_Batch]] = field(default_factory=dict)
    _looking: Lock = field(default_factory=Lock)

    def behind(self, channel: str, start: int) -> Unread:
        """What lies in a channel from the batch ``start`` on."""
        with self._looking:
            batches = self._look(channel, start)
            unread = [batch for batch in batches if batch.sequence >= start and batch.rows]
        arrived = [batch.arrived_s for batch in unread if batch.arrived_s is not None]
        return Unread(sum(batch.rows for batch in unread), min(arrived, default=None))

    def free(self, channel: str, start: int) -> None:
        """Forgets what lies before ``start``, which nobody will ask about."""
        with self._looking:
            batches = self._batches.get(channel, deque())
            while batches and batches[0].sequence < start:
                batches.popleft()

    def _look(self, channel: str, start: int) -> deque[_Batch]:
        batches = self._batches.setdefault(channel, deque())
        if batches and start < batches[0].sequence:
            batches.clear()
        following = batches[-1].sequence + 1 if batches else start
        log = self.channel_of(channel)
        # Not by newer(), which misses what is read and freed at this very moment.
        while (manifest := log.manifest(following)) is not None:
            batches.append(_Batch(following, manifest.rows, manifest.arrived_s))
            following += 1
        return batches
