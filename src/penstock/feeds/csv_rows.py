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


def open_marked(path: Path) -> MarkedStream:
    """The bytes of a file, unpacked if it is gzipped, with what is not UTF-8 marked."""
    # Opened here, because Arrow opens only files whose names are UTF-8.
    file = path.open("rb")
    return MarkedStream(pa.CompressedInputStream(file, "gzip") if path.suffix == ".gz" else file)


def leading_rows(path: Path, layout: CsvLayout, count: int) -> list[list[str]]:
    """The fields of the first ``count`` rows, as far as there are any."""
    with open_marked(path) as stream:
        return [row for _, row in islice(_numbered(stream, layout), count)]


def _numbered(stream: MarkedStream, layout: CsvLayout) -> Iterator[tuple[int, list[str]]]:
    """The line each row begins in, and its fields; empty lines are no rows."""
    with io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", newline="") as lines:
        reader = csv.reader(lines, delimiter=layout.delimiter)
        line = 1
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1


class RowFinder:
    """Finds rows of a CSV file by their number, counted from 1 with the header.

    The file is read once more for it, never backwards, so the numbers asked for must rise.
    """

    def __init__(self, path: Path, layout: CsvLayout) -> None:
        self._path = path
        self._layout = layout
        self._rows: Iterator[tuple[int, list[str]]] | None = None
        self._number = 0

    def find(self, number: int) -> tuple[int, str]:
        """The line in which the row begins, and the row; line 0 where it cannot be told."""
        if self._rows is None:
            self._rows = _numbered(open_marked(self._path), self._layout)
        try:
            for line, row in self._rows:
                self._number += 1
                if self._number == number:
                    return line, shown(self._layout.delimiter.join(row))
        except csv.Error:
            self._rows = iter(())
        return 0, ""
