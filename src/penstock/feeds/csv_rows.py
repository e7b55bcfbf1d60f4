"""Where the rows of a CSV file stand: asked only for rows that could not be read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from penstock.feeds.utf8 import MarkedStream, shown
from penstock.model.sources import CsvLayout

LONGEST_FIELD = 8 << 20
"""Characters that a field may have; without a limit, a quote that is never closed takes the rest.

Python's own limit of 131,072 is less than real files hold, and there is one for the whole process.
"""
csv.field_size_limit(LONGEST_FIELD)

NumberedRow = tuple[int, list[str] | None, str]
"""The line a row begins in, its fields, None where one of them is too long, and its text."""


def open_marked(path: Path) -> MarkedStream:
    """The bytes of a file, unpacked if it is gzipped, with what is not UTF-8 marked."""
    # Opened here, because Arrow opens only files whose names are UTF-8.
    file = path.open("rb")
    return MarkedStream(pa.CompressedInputStream(file, "gzip") if path.suffix == ".gz" else file)


def leading_rows(path: Path, layout: CsvLayout, count: int) -> list[list[str]]:
    """The fields of the first ``count`` rows, as far as there are any."""
    with open_marked(path) as stream:
        return [row or [] for _, row, _ in islice(_numbered(stream, layout), count)]


def rows_from(path: Path, layout: CsvLayout, number: int) -> Iterator[NumberedRow]:
    """The rows from ``number`` on, counted from 1 with the header; linear in the whole file."""
    with open_marked(path) as stream:
        yield from islice(_numbered(stream, layout), number - 1, None)


def _numbered(stream: MarkedStream, layout: CsvLayout) -> Iterator[NumberedRow]:
    """The line each row begins in, its fields and its text; empty lines are no rows."""
    with io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", newline="") as file:
        lines = _Remembered(file)
        reader = csv.reader(lines, delimiter=layout.delimiter)
        line = 1
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:
                # The field is too long; the reader goes on with the line after.
                yield line, None, lines.taken()
            else:
                text = lines.taken()
                if row:
                    yield line, row, text
            line = reader.line_num + 1


class _Remembered:
    """Gives lines on, and keeps those of one row as they were written: quotes and all."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._given: list[str] = []

    def __iter__(self) -> _Remembered:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._given.append(line)
        return line

    def taken(self) -> str:
        """The lines given since it was last asked, without the last line end."""
        text = "".join(self._given)
        self._given.clear()
        return text.removesuffix("\n").removesuffix("\r")


class RowFinder:
    """Finds rows of a CSV file by their number, counted from 1 with the header.

    The file is read once more for it, never backwards, so the numbers asked for must rise.
    """

    def __init__(self, path: Path, layout: CsvLayout) -> None:
        self._path = path
        self._layout = layout
        self._rows: Iterator[NumberedRow] | None = None
        self._number = 0

    def find(self, number: int) -> tuple[int, str]:
        """The line in which the row begins, and the row as written; line 0 if it is not there."""
        if self._rows is None:
            self._rows = _numbered(open_marked(self._path), self._layout)
        for line, _, text in self._rows:
            self._number += 1
            if self._number == number:
                return line, shown(text)
        return 0, ""
