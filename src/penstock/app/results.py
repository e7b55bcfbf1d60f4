"""The rows of queries that go to the terminal: taken where they arrive, shown where we draw."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.app.words import cell
from penstock.feeds.arrow import values_of

if TYPE_CHECKING:
    import pyarrow as pa

REMEMBERED = 10
_NUMBERS = ("int", "uint", "float", "double", "half", "decimal")


@dataclass(frozen=True)
class QueryRows:
    """The latest rows of one query as texts, newest last, and how many there have been."""

    query: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int


class LatestRows:
    """Remembers the last few rows of every query; rows may come in from any thread."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._latest: dict[str, QueryRows] = {}
        self._lock = threading.Lock()

    def add(self, query: str, rows: pa.Table) -> None:
        """Takes a batch; the query that got rows last is the last of :meth:`snapshot`."""
        newest = texts(rows.slice(max(0, rows.num_rows - self._remembered)))
        with self._lock:
            before = self._latest.pop(query, None)
            kept = deque(before.rows if before else (), maxlen=self._remembered)
            kept.extend(newest)
            self._latest[query] = QueryRows(
                query,
                tuple(rows.column_names),
                tuple(str(field.type).startswith(_NUMBERS) for field in rows.schema),
                tuple(kept),
                (before.total if before else 0) + rows.num_rows,
            )

    def snapshot(self) -> tuple[QueryRows, ...]:
        """What there is now, the query with the newest rows last."""
        with self._lock:
            return tuple(self._latest.values())


class PendingRows:
    """Keeps every row until it is printed; rows may come in from any thread."""

    def __init__(self) -> None:
        self._batches: list[tuple[str, pa.Table]] = []
        self._lock = threading.Lock()

    def add(self, query: str, rows: pa.Table) -> None:
        """Takes a batch."""
        with self._lock:
            self._batches.append((query, rows))

    def lines(self) -> Iterator[str]:
        """What has come since the last call, one line a row."""
        with self._lock:
            batches, self._batches = self._batches, []
        for query, rows in batches:
            names = rows.column_names
            yield from (line(query, names, row) for row in texts(rows))


def texts(rows: pa.Table) -> list[tuple[str, ...]]:
    """The rows of a table as texts."""
    columns = [values_of(column) for column in rows.columns]
    return [tuple(map(cell, row)) for row in zip(*columns, strict=True)]


def line(query: str, names: Iterable[str], row: Iterable[str]) -> str:
    """One row on one line, readable without the lines around it.

    >>> line("heavy", ["home", "kwh"], ["h1", "9.4"])
    'heavy  home=h1  kwh=9.4'
    """
    pairs = (f"{name}={value}" for name, value in zip(names, row, strict=True))
    return "  ".join((query, *pairs))
