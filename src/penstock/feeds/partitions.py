"""A stream that comes in partitions: in which order its rows are taken, how far its time has come.

Partitions have an order each and none among them. So a row is late by the rows before it in its
own partition, and the time of the stream is that of the partition which is furthest behind: none is
made late by another that runs ahead. A partition that brings nothing for a while is not waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

_BLOCK = 1_000


@dataclass(frozen=True)
class Span:
    """Records of one partition from offset ``start`` up to, not including, ``stop``."""

    partition: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many offsets it has: no fewer than records."""
        return self.stop - self.start


def block_of(partitions: int, most: int) -> int:
    """How many offsets a partition takes a turn: 1,000, or fewer so that all have one in ``most``.

    >>> block_of(12, 200_000), block_of(1_000, 200_000)
    (1000, 200)
    """
    return min(_BLOCK, max(1, most // max(1, partitions)))


def take_turns(unread: Iterable[Span], block: int, most: int) -> tuple[Span, ...]:
    """What to take of ``unread`` now, as blocks in the order in which they are taken.

    Partitions take turns, in the order of their numbers, with up to ``block`` offsets a turn. A
    round of turns is taken whole, and after the first one only while that keeps within ``most``. So
    the order of a topic that is all there already is the same however it is cut. Linear in the
    blocks taken.

    >>> take_turns([Span(0, 0, 25), Span(1, 7, 9)], 10, 30)[:3]
    (Span(partition=0, start=0, stop=10), Span(partition=1, start=7, stop=9), \
Span(partition=0, start=10, stop=20))
    """
    left = sorted((span for span in unread if span.size), key=lambda span: span.partition)
    taken: list[Span] = []
    room = most
    while left:
        turns = [
            Span(span.partition, span.start, min(span.stop, span.start + block)) for span in left
        ]
        room -= sum(turn.size for turn in turns)
        if taken and room < 0:
            break
        taken += turns
        left = [
            Span(span.partition, turn.stop, span.stop)
            for span, turn in zip(left, turns, strict=True)
            if turn.stop < span.stop
        ]
    return tuple(taken)


def stream_time_us(
    reached_us: Mapping[int, int], awaited: Collection[int], before_us: int | None
) -> int | None:
    """How far the time of a stream has come, given how far that of each partition has.

    It is that of the one furthest behind among those ``awaited``, which may yet bring rows. One of
    them that has had no row holds the time where it is. If none is awaited, the latest counts.
    It never goes back behind ``before_us``.

    >>> stream_time_us({0: 50, 1: 20, 2: 90}, {0, 1}, None)
    20
    >>> stream_time_us({0: 50, 1: 20}, {0, 3}, 10), stream_time_us({0: 50, 1: 20}, (), 10)
    (10, 50)
    """
    if any(partition not in reached_us for partition in awaited):
        return before_us
    furthest_us = latest_of(*reached_us.values())
    return latest_of(
        min((reached_us[partition] for partition in awaited), default=furthest_us), before_us
    )


def latest_of(*moments_us: int | None) -> int | None:
    """The latest of the moments that are known; None if none is.

    >>> latest_of(3, None, 5), latest_of(None)
    (5, None)
    """
    return max((us for us in moments_us if us is not None), default=None)
