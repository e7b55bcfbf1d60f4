"""How a run does at one moment, and who is shown it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from penstock.app.results import QueryRows
from penstock.app.words import count, counted
from penstock.control.meter import NodeUse
from penstock.model.measurements import FragmentStatus

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.app.outcome import Outcome

SetAside = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Snapshot:
    """Everything that is shown at one moment; counts are those of this run."""

    statuses: tuple[FragmentStatus, ...]
    results: tuple[QueryRows, ...] = ()
    use: NodeUse | None = None
    cpu_history: tuple[float, ...] = ()
    set_aside: SetAside = field(default_factory=dict)
    dead_letters: Path = Path("dead_letters")


class Presenter(Protocol):
    """Shows a run; all but :meth:`rows` is called from one thread."""

    def begin(self, facts: list[str], notes: list[str]) -> None:
        """Says what is about to run."""

    def note(self, text: str) -> None:
        """Says what has turned out once it has begun."""

    def working(self, what: str) -> AbstractContextManager[object]:
        """Says that something takes a while, until the context is left."""

    def rows(self, query: str, rows: pa.Table) -> None:
        """Takes rows of a query that go to the terminal; called from any thread."""

    def update(self, snapshot: Snapshot, seconds: float) -> None:
        """Shows how things are now."""

    def end(self, outcome: Outcome) -> None:
        """Says what came of it."""

    def close(self) -> None:
        """Leaves the terminal as it was; called whatever happened."""


def totals(rows_in: int, rows_out: int, set_aside: SetAside) -> str:
    """The counts of a run in one phrase.

    >>> totals(161200, 3418, {"readings": {"late": 2, "malformed": 0}})
    '161,200 rows in, 3,418 out, 2 set aside'
    """
    aside = sum(sum(kinds.values()) for kinds in set_aside.values())
    return f"{counted(rows_in, 'row')} in, {count(rows_out)} out, {count(aside)} set aside"
