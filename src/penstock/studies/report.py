"""What a study is and what it reports.

A study is a module of this package with one function

    study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport

- ``quick`` asks for a run of under a minute: fewer seeds and points, the same quantities.
- ``say`` takes a line about progress.
- ``run(function, points, say)`` gives ``[function(point) for point in points]``, possibly from
  several processes or machines. ``function`` is at the top of a module, takes one plain value (a
  number or a tuple of numbers and texts), gives records of such values and depends on nothing else,
  so that results are the same to the last bit wherever they come from. Random numbers come from
  :func:`penstock.studies.seeds.rng_of`.

The report has a row for each quantity that the source states or claims, tables of everything that
was measured, and figures drawn from those tables. ``studies.writing`` puts them on disk as CSV and
SVG. A new study is one module here and one line in ``studies.registry``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeVar

from penstock.studies.figures import Figure

Say = Callable[[str], None]
Value = float | int | str | None

_P = TypeVar("_P")
_R = TypeVar("_R")


class Runner(Protocol):
    """Calls a function for every point; the results are in the order of the points."""

    def __call__(
        self, function: Callable[[_P], _R], points: Sequence[_P], say: Say
    ) -> list[_R]: ...


Study = Callable[[bool, Say, Runner], "StudyReport"]


@dataclass(frozen=True)
class Row:
    """One quantity: what the source says, what we get, and whether they agree.

    ``source`` is the published number, or None where it only makes a statement, which is then in
    ``quantity``. ``low`` and ``high`` are the bounds within which ours counts as agreeing.
    """

    quantity: str
    source: float | None
    ours: float
    low: float | None = None
    high: float | None = None
    agrees: bool = True
    note: str = ""


@dataclass(frozen=True)
class ResultTable:
    """Measured values: named columns and rows of plain values; ``name`` names the CSV file.

    >>> ResultTable("t", ("x", "y"), ((1, 2.0), (3, 4.0))).column("y")
    [2.0, 4.0]
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def column(self, name: str) -> list[Value]:
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def where(self, /, **wanted: Value) -> ResultTable:
        """The rows that have these values."""
        kept = [
            row
            for row in self.rows
            if all(row[self.columns.index(name)] == value for name, value in wanted.items())
        ]
        return ResultTable(self.name, self.columns, tuple(kept))


@dataclass(frozen=True)
class StudyReport:
    """What a study found."""

    study: str
    rows: tuple[Row, ...]
    tables: tuple[ResultTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    setup: str = ""
    """How it was done, in a few sentences, for the reader of the table."""

    @property
    def agrees(self) -> bool:
        return all(row.agrees for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """The stable form that ``penstock study NAME --json`` prints."""
        return {"study": self.study, "rows": [asdict(row) for row in self.rows]}

    def table(self, name: str) -> ResultTable:
        return next(table for table in self.tables if table.name == name)


def within(
    quantity: str,
    source: float | None,
    ours: float,
    low: float | None = None,
    high: float | None = None,
    note: str = "",
) -> Row:
    """A row that agrees if ours lies between the bounds that are given.

    >>> within("ratio", 0.9, 0.88, low=0.8, high=1.0).agrees
    True
    """
    above = low is None or ours >= low
    below = high is None or ours <= high
    return Row(quantity, source, ours, low, high, above and below, note)


def near(quantity: str, source: float, ours: float, within_: float, note: str = "") -> Row:
    """A row that agrees if ours is at most ``within_`` away from the source's number."""
    return within(quantity, source, ours, source - within_, source + within_, note)


def records(name: str, found: Sequence[Mapping[str, Value]]) -> ResultTable:
    """A table from records with the same keys."""
    columns = tuple(found[0]) if found else ()
    return ResultTable(
        name, columns, tuple(tuple(record[key] for key in columns) for record in found)
    )


def gathered(name: str, parts: Iterable[Sequence[Mapping[str, Value]]]) -> ResultTable:
    """A table of what all points gave, where each of them gave several records."""
    return records(name, [record for part in parts for record in part])
