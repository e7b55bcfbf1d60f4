"""Windows over event time, and the time bound of a join."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import InputError
from penstock.model.durations import US_PER_S, duration_text

LONGEST_US = 365_000 * 86_400 * US_PER_S
"""What windows, gaps and bounds may span, about 1,000 years.

Whatever is made of event times in the years 1 to 9999 then stays within what Spark can count.
"""


@dataclass(frozen=True)
class Window:
    """Windows of ``size_us``, one beginning every ``slide_us``; tumbling when they are equal.

    >>> Window.of(60_000_000).is_tumbling
    True
    """

    size_us: int
    slide_us: int

    def __post_init__(self) -> None:
        if self.size_us <= 0 or self.slide_us <= 0:
            raise InputError(
                f"a window of {_signed(self.size_us)} every {_signed(self.slide_us)}",
                hint="Both must be longer than zero.",
            )
        if self.slide_us > self.size_us:
            raise InputError(
                f"a window of {duration_text(self.size_us)} that slides by "
                f"{duration_text(self.slide_us)} would skip rows",
                hint="Make the slide at most as long as the window.",
            )
        _check_length(self.size_us, "a window")

    @classmethod
    def of(cls, size_us: int, slide_us: int | None = None) -> Window:
        """A sliding window, or a tumbling one without ``slide_us``."""
        return cls(size_us, size_us if slide_us is None else slide_us)

    @property
    def is_tumbling(self) -> bool:
        return self.size_us == self.slide_us

    @property
    def copies_per_row(self) -> float:
        """In how many windows a row falls on average."""
        return self.size_us / self.slide_us

    def __str__(self) -> str:
        size = duration_text(self.size_us)
        return (
            f"every {size}" if self.is_tumbling else f"{size} every {duration_text(self.slide_us)}"
        )


@dataclass(frozen=True)
class SessionWindow:
    """Windows that end when a key is silent for longer than ``gap_us``."""

    gap_us: int

    def __post_init__(self) -> None:
        if self.gap_us <= 0:
            raise InputError(
                f"a session with a gap of {_signed(self.gap_us)}", hint="Give a gap above zero."
            )
        _check_length(self.gap_us, "a session with a gap")

    @property
    def copies_per_row(self) -> float:
        """In how many windows a row falls."""
        return 1.0

    def __str__(self) -> str:
        return f"sessions with gaps of {duration_text(self.gap_us)}"


AnyWindow = Window | SessionWindow


@dataclass(frozen=True)
class TimeBound:
    """How far apart joined rows may be: left + ``lower_us`` <= right <= left + ``upper_us``."""

    lower_us: int
    upper_us: int

    def __post_init__(self) -> None:
        if self.lower_us > self.upper_us:
            raise InputError(
                f"a time bound from {_signed(self.lower_us)} to {_signed(self.upper_us)} is empty",
                hint="Swap the two ends.",
            )
        _check_length(max(-self.lower_us, self.upper_us), "a time bound")

    def __str__(self) -> str:
        return f"right in left {_signed(self.lower_us, '+')} .. {_signed(self.upper_us, '+')}"


def _check_length(us: int, what: str) -> None:
    if us > LONGEST_US:
        raise InputError(
            f"{what} of {duration_text(us)} is too long",
            hint=f"Give at most {duration_text(LONGEST_US)}.",
        )


def _signed(us: int, plus: str = "") -> str:
    return f"-{duration_text(-us)}" if us < 0 else f"{plus}{duration_text(us)}"
