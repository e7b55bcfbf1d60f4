"""What a submission reads of others instead of computing it: decided once, recorded with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SharedStream:
    """A stream of a submission that is the same as one that runs, which it reads instead.

    ``source`` is the channel to read, filled by the fragment ``maker``; ``columns`` say which of
    its columns each column of ``stream`` is. A stream that is ``tapped`` lies inside the maker,
    which gives it to a channel for those who share it.

    >>> SharedStream("mine", "a_sum", "2:f00", "a", (("n", "count"),)).source
    'a_sum'
    """

    stream: str
    source: str
    signature: str
    maker: str
    columns: tuple[tuple[str, str], ...]
    tapped: bool = False


@dataclass(frozen=True)
class Sharing:
    """What a submission shares, and in words what it could have shared and does not.

    ``saved`` are its operators that others compute for it, ``projected_s`` the time to its results
    as it was projected when it was taken in.
    """

    reads: tuple[SharedStream, ...] = ()
    saved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    projected_s: float | None = None


NOTHING_SHARED = Sharing()
