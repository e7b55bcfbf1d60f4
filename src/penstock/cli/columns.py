"""Columns of text that fit into a given width, whatever the width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

GAP = 2
MORE = "…"


@dataclass(frozen=True)
class TextColumn:
    """A title and the cells below it.

    Where the width does not suffice, columns leave in the order of ``rank``, highest first; those
    of rank 0 stay and share what there is.
    """

    title: str
    cells: tuple[str, ...]
    rank: int = 0
    right: bool = True
    style: str = ""
    least: int = 0

    @property
    def width(self) -> int:
        """The width of its widest cell, or ``least``, for what is known to become wider."""
        return max(self.least, *map(cell_len, (self.title, *self.cells)))


def fitted(columns: Sequence[TextColumn], width: int) -> list[TextColumn]:
    """The columns that have room side by side in ``width``, in their order.

    >>> name, note = TextColumn("name", ("anna",)), TextColumn("note", ("knows it",), rank=1)
    >>> [one.title for one in fitted([name, note], 20)], [one.title for one in fitted([name], 10)]
    (['name', 'note'], ['name'])
    >>> [one.title for one in fitted([name, note], 10)]
    ['name']
    """
    kept = list(columns)
    while natural_width(kept) > width and any(column.rank for column in kept):
        kept.remove(max(reversed(kept), key=lambda column: column.rank))
    return kept


def natural_width(columns: Sequence[TextColumn]) -> int:
    """The width the columns take side by side when nothing is shortened."""
    return sum(column.width for column in columns) + GAP * max(0, len(columns) - 1)


def table(columns: Sequence[TextColumn], width: int, indent: int = 1) -> list[Text]:
    """A line of titles and a line for each row, none longer than ``width``."""
    kept = fitted(columns, width - indent)
    if not kept:
        return []
    widths = _widths(kept, width - indent)
    titles = [(column.title, "dim") for column in kept]
    rows = [
        [(column.cells[at], column.style) for column in kept] for at in range(len(kept[0].cells))
    ]
    return [_line(kept, widths, cells, indent) for cells in (titles, *rows)]


def _widths(columns: Sequence[TextColumn], width: int) -> list[int]:
    """The natural widths, with the widest cut down until all fit."""
    widths = [column.width for column in columns]
    room = width - GAP * (len(columns) - 1)
    while sum(widths) > room and max(widths) > 1:
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths


def _line(
    columns: Sequence[TextColumn], widths: list[int], cells: Sequence[tuple[str, str]], indent: int
) -> Text:
    line = Text(" " * indent, no_wrap=True, overflow="ellipsis")
    for at, (column, width, (text, style)) in enumerate(zip(columns, widths, cells, strict=True)):
        line.append(" " * GAP if at else "")
        line.append(padded(text, width, column.right), style or None)
    line.rstrip()
    return line


def padded(text: str, width: int, right: bool = False) -> str:
    """The text in exactly ``width`` cells; a longer one ends in an ellipsis.

    >>> padded("a", 3), padded("a", 3, right=True), padded("abcd", 3)
    ('a  ', '  a', 'ab…')
    """
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + MORE
    return " " * (width - length) + text if right else text + " " * (width - length)


def shortened(text: str, width: int) -> str:
    """The text, cut to at most ``width`` cells."""
    return padded(text, width).rstrip() if cell_len(text) > width else text
