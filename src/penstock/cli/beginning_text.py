"""Since when queries count what they read, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.control.answer_models import BeginAnswer, FragmentAnswer


def beginning_lines(begins: Sequence[BeginAnswer]) -> Iterator[str]:
    """Since when each query counts, where that is not from the first row on."""
    for begin in begins:
        name = ", ".join(begin.queries) or begin.fragment
        if begin.since is not None:
            yield f"{name} counts after {clear_moment(begin.since)} UTC, event time"
        if begin.untimed:
            yield f"{name} sees rows from the next batch on where they have no event time"


def since_words(answer: BeginAnswer | FragmentAnswer) -> str:
    """Since when a fragment counts, for a table."""
    if answer.since is not None:
        return clear_moment(answer.since)
    return "its submission" if answer.untimed else "the start"


def clear_moment(written: str) -> str:
    """A moment as people read it.

    >>> clear_moment("2026-03-01T12:00:00.250000Z"), clear_moment("2026-03-01T12:00:00Z")
    ('2026-03-01 12:00:00.25', '2026-03-01 12:00:00')
    """
    day, _, time_of_day = written.removesuffix("Z").partition("T")
    whole, point, part = time_of_day.partition(".")
    return f"{day} {whole}{point}{part.rstrip('0')}"
