"""What is noticed of a system: rows set aside, results that come late, disks that are too small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from penstock.control.answer_models import LetterAnswer, SetAsideAnswer
from penstock.control.answers import fragments_answer
from penstock.control.catalog import Catalog
from penstock.control.set_aside import is_news, letters_answer, outside_streams, set_aside_answer
from penstock.control.system import System, Unit
from penstock.errors import InputError, listed, suggestion
from penstock.model.operators import WindowJoin

NOTED_EVERY_S = 10.0
ROOM_EVERY_S = 30.0
NO_ROOM, ROOM = "no room", "room"
"""Kinds of events: the disk is too small for the windows of a join, or no longer so."""
_MOST_EVENTS = 2_000
_ASIDE = "aside"


class Notices:
    """Looks at what nodes have written and measured, and tells what is news as events.

    ``state`` is the system's state folder.
    """

    def __init__(self, catalog: Catalog, state: Path, system: Callable[[], System]) -> None:
        self._catalog = catalog
        self._state = state
        self._system = system
        self._looked_s = self._timed_s = 0.0
        self._slow: set[str] = set()
        self._told_slow: set[str] = set()
        self._told_aside: dict[str, Mapping[str, Any]] | None = None
        self._room_looked_s = 0.0
        self._short: frozenset[str] = frozenset()

    def set_aside(self) -> list[SetAsideAnswer]:
        """The streams from outside of which something could not be used: how much, and why."""
        return set_aside_answer(self._state, outside_streams(self._system()))

    def dead_letters(self, stream: str, last: int) -> list[LetterAnswer]:
        """The latest rows of a stream that could not be used, oldest first."""
        known = outside_streams(self._system())
        if stream not in known:
            why = "is a result; rows are set aside where they come in from outside"
            is_result = stream in self._system().streams
            raise InputError(
                f"{stream} {why}" if is_result else f"no stream {stream} from outside",
                hint=f"There are {listed(known)}. {suggestion(stream, known)}".strip(),
            )
        return letters_answer(self._state, stream, last)

    def note_set_aside(self, now_s: float) -> None:
        """Tells now and then what could not be used: of each kind the first, and every doubling."""
        if now_s - self._looked_s < NOTED_EVERY_S:
            return
        self._looked_s = now_s
        if self._told_aside is None:
            events = self._catalog.events(last=_MOST_EVENTS)
            self._told_aside = {
                event.subject: event.numbers for event in events if event.kind == _ASIDE
            }
        for told in self.set_aside():
            before: Mapping[str, Any] = self._told_aside.get(told.stream, {})
            counts = told.rows | ({"nothing_read": 1} if told.nothing_read else {})
            if is_news(before, counts):
                self._told_aside[told.stream] = counts
                self._catalog.tell(_ASIDE, told.stream, told.text, **counts)

    def note_latencies(self, now_s: float) -> None:
        """Tells whose results have come to take longer than they may, and whose no longer do.

        Told once it has lasted from one look to the next: a single slow batch is no trouble yet.
        """
        if now_s - self._timed_s < NOTED_EVERY_S:
            return
        self._timed_s = now_s
        found = fragments_answer(self._catalog, self._system())
        late = {fragment.name: fragment.notes[-1] for fragment in found if fragment.late}
        for name, text in late.items():
            if name in self._slow and name not in self._told_slow:
                self._told_slow.add(name)
                self._catalog.tell("late", name, text)
        for name in sorted(self._told_slow - set(late)):
            self._told_slow.discard(name)
            if name in self._system().units:
                self._catalog.tell("in time", name, "results come as soon as they should again")
        self._slow = set(late)

    def room_warnings(self, units: Iterable[Unit]) -> list[str]:
        """What to say of joins that begin, by the rates that their streams name."""
        joins = [unit for unit in units if _has_join(unit)]
        if not joins:
            return []
        # Only now: what it needs is large, and few submissions join streams.
        from penstock.control.disk_room import expected_shortages

        fragments = [unit.fragment for unit in joins if unit.fragment is not None]
        return list(expected_shortages(joins[0].network, fragments, self._state))

    def note_room(self, now_s: float) -> None:
        """Tells of joins whose windows will not fit on the disk as their streams flow now."""
        if now_s - self._room_looked_s < ROOM_EVERY_S or not any(
            map(_has_join, self._system().units.values())
        ):
            return
        # Only now: what it needs is large, and few systems join streams.
        from penstock.control.disk_room import shortages

        self._room_looked_s = now_s
        found = shortages(self._system(), self._state)
        for name in sorted(found.keys() - self._short):
            self._catalog.tell(NO_ROOM, name, found[name])
        for name in sorted(self._short - found.keys()):
            if name in self._system().units:
                self._catalog.tell(ROOM, name, "its windows fit on the disk again")
        self._short = frozenset(found)


def _has_join(unit: Unit) -> bool:
    operators = () if unit.fragment is None else unit.fragment.operators
    return any(isinstance(operator, WindowJoin) for operator in operators)
