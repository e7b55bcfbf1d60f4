"""How joins in parts are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.control.answer_models import JoinAnswer, PartAnswer

_NONE = "no join is in parts; say join: {spread: 2} of a query to share its join out"


def join_lines(joins: Sequence[JoinAnswer]) -> Iterator[str]:
    """Each join with its parts, as text for people."""
    if not joins:
        yield _NONE
    for join in joins:
        yield f"{join.name}: {join.groups} groups, spread {join.spread}, {join.moved} moved so far"
        yield from map(_part_line, join.parts)


def _part_line(part: PartAnswer) -> str:
    groups = ranges_text(part.groups) or "no groups"
    text = (
        f"  {part.fragment} on {part.node or '–'}: {len(part.groups)} groups ({groups}), "
        f"{part.occupancy:.0%} full, {part.rows_in_per_s:,.0f} rows/s, "
        f"{part.rows_held:,} rows and {part.bytes_held / 1e6:,.1f} MB held"
    )
    if part.arriving:
        text += f", {ranges_text(part.arriving)} arriving"
    return text + (", ended" if part.has_ended else "")


def ranges_text(numbers: Sequence[int]) -> str:
    """Numbers in order, those that follow each other together.

    >>> ranges_text([0, 1, 2, 5])
    '0-2,5'
    """
    found = []
    for _, run in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        together = [number for _, number in run]
        first, last = together[0], together[-1]
        found.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(found)
