"""How a run is shown: as a live table, as plain lines, or only by its outcome as JSON."""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from penstock.app.outcome import Outcome, as_record, destinations, labelled, sentence
from penstock.app.results import LatestRows, PendingRows
from penstock.app.snapshots import Snapshot
from penstock.app.words import count, span
from penstock.channels.layout import StateLayout
from penstock.cli.view import (
    fragment_table,
    header,
    result_lines,
    screen,
    set_aside_lines,
)

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN_EVERY_S = 5.0


class _Elapsed:
    """Something that takes a while, with the time it has taken whenever it is drawn."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began_s = time.monotonic()

    def __rich__(self) -> Text:
        return Text(f"{self._what} {span(time.monotonic() - self._began_s)}")


class LivePresenter:
    """A table that is drawn over itself, for people at a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._latest = LatestRows()
        self._live: Live | None = None
        self._head: list[Text] = []
        self._size = console.size

    def begin(self, facts: list[str], notes: list[str]) -> None:
        lines = header(facts, self._console.width)
        self._head = [*lines, *(Text(note, "dim") for note in notes), Text("")]
        self._console.print(*self._head, sep="\n")

    def note(self, text: str) -> None:
        self.close()
        self._head = [*self._head[:-1], Text(text, "dim"), Text("")]
        self._console.print(Text(text, "dim"), soft_wrap=True)

    def working(self, what: str) -> AbstractContextManager[object]:
        self.close()
        return self._console.status(_Elapsed(what))

    def rows(self, query: str, rows: pa.Table) -> None:
        self._latest.add(query, rows)

    def update(self, snapshot: Snapshot, seconds: float) -> None:
        size = self._console.size
        if self._live is None or size != self._size:
            self._restart(size != self._size)
        assert self._live is not None
        lines = screen(snapshot_with(snapshot, self._latest), size.width, size.height - 1)
        self._live.update(Group(*lines), refresh=True)

    def _restart(self, resized: bool) -> None:
        """A resized terminal has moved what was drawn, so all of it is drawn anew."""
        self.close()
        self._size = self._console.size
        if resized:
            self._console.clear()
            self._console.print(*self._head, sep="\n")
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def end(self, outcome: Outcome) -> None:
        self.close()
        width = self._console.width
        for line in summary_lines(outcome, width):
            self._console.print(line, soft_wrap=True)
        results = result_lines(self._latest.snapshot(), width, 1 << 16)
        if results:
            self._console.print("", *results, sep="\n")
        self._console.print("", Text(sentence(outcome), "bold"), sep="\n")


class PlainPresenter:
    """Result rows on standard output as they come, everything else on standard error."""

    def __init__(self, out: Console, err: Console, every_s: float = _PLAIN_EVERY_S) -> None:
        self._out, self._err = out, err
        self._every_s = every_s
        self._said_s = 0.0
        self._pending = PendingRows()

    def begin(self, facts: list[str], notes: list[str]) -> None:
        self._say(" · ".join(facts))
        for text in notes:
            self.note(text)

    def note(self, text: str) -> None:
        self._say(text)

    def working(self, what: str) -> AbstractContextManager[object]:
        self._say(what)
        return nullcontext()

    def rows(self, query: str, rows: pa.Table) -> None:
        self._pending.add(query, rows)

    def update(self, snapshot: Snapshot, seconds: float) -> None:
        self._print_rows()
        if seconds - self._said_s >= self._every_s:
            self._said_s = seconds
            self._say(_status_line(snapshot, seconds))

    def end(self, outcome: Outcome) -> None:
        self._print_rows()
        for line in summary_lines(outcome, 100):
            self._say(line.plain)
        self._say(sentence(outcome))

    def close(self) -> None:
        self._print_rows()

    def _print_rows(self) -> None:
        for line in self._pending.lines():
            self._out.out(line, highlight=False)
        self._out.file.flush()

    def _say(self, line: str) -> None:
        self._err.out(line, highlight=False)


class JsonPresenter:
    """Nothing but one JSON object at the end."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._notes: list[str] = []

    def begin(self, facts: list[str], notes: list[str]) -> None:
        self._notes += notes

    def note(self, text: str) -> None:
        self._notes.append(text)

    def working(self, what: str) -> AbstractContextManager[object]:
        return nullcontext()

    def rows(self, query: str, rows: pa.Table) -> None:
        return None

    def update(self, snapshot: Snapshot, seconds: float) -> None:
        return None

    def end(self, outcome: Outcome) -> None:
        record = {**as_record(outcome), "notes": self._notes}
        self._out.out(json.dumps(record, indent=2), highlight=False)
        self._out.file.flush()

    def close(self) -> None:
        return None


def snapshot_with(snapshot: Snapshot, latest: LatestRows) -> Snapshot:
    """The snapshot with the newest rows."""
    return replace(snapshot, results=latest.snapshot())


def summary_lines(outcome: Outcome, width: int) -> list[Text]:
    """A line for each query, then where results went and what was set aside."""
    if not outcome.has_run:
        return []
    statuses = labelled(outcome.plan.fragments, outcome.statuses)
    lines = fragment_table(statuses, width, is_over=True)
    folder = outcome.dead_letters or StateLayout(outcome.plan.folder).dead_letters
    lines += set_aside_lines(
        Snapshot(statuses, set_aside=outcome.set_aside, dead_letters=folder), 1 << 16
    )
    lines += [Text(f" {query} {place}") for query, place in destinations(outcome)]
    return lines


def _status_line(snapshot: Snapshot, seconds: float) -> str:
    rate = sum(status.rows_in_per_s for status in snapshot.statuses)
    rows_in = sum(status.rows_in for status in snapshot.statuses)
    rows_out = sum(status.rows_out for status in snapshot.statuses)
    finished = sum(status.is_finished for status in snapshot.statuses)
    return (
        f"{span(seconds)}: {count(rate)} rows/s read, {count(rows_in)} rows read, "
        f"{count(rows_out)} written, {finished} of {len(snapshot.statuses)} finished"
    )
