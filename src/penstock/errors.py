"""The one error tree: what happened, what was given, what to do.

Everything Penstock raises on purpose is a :class:`PenstockError`. The command line prints its
text and leaves with its ``exit_code``; nothing else about an error is part of the interface.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar


@dataclass(frozen=True)
class Place:
    """Where in something a person wrote an error lies.

    ``line`` and ``column`` count from 1 and refer to ``text``, the whole text that was written.

    >>> print(Place("ami.yaml, query heavy", "SELECT hom\\nFROM readings", 1, 8, 3).pointer())
    ami.yaml, query heavy, line 1:
        SELECT hom
               ^^^
    """

    origin: str
    text: str
    line: int
    column: int = 1
    length: int = 1

    def pointer(self) -> str:
        """The line in question with the place underlined."""
        lines = self.text.splitlines()
        head = f"{self.origin}, line {self.line}:"
        if not 1 <= self.line <= len(lines):
            return head
        shown = lines[self.line - 1].replace("\t", " ")
        room = max(1, len(shown) - self.column + 1)
        underline = "^" * max(1, min(self.length, room))
        return f"{head}\n    {shown}\n    {' ' * (self.column - 1)}{underline}"


class PenstockError(Exception):
    """Something went wrong that a person can do something about.

    ``what`` says what happened and what was given, ``hint`` what to do about it.

    >>> print(InputError("no stream redings", hint="Did you mean readings?"))
    no stream redings. Did you mean readings?
    """

    exit_code: ClassVar[int] = 4

    def __init__(self, what: str, *, hint: str = "", place: Place | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.place = place

    def __str__(self) -> str:
        separator = "" if self.what.endswith((".", "?", "!")) else "."
        sentence = f"{self.what}{separator} {self.hint}" if self.hint else self.what
        return f"{self.place.pointer()}\n{sentence}" if self.place else sentence

    def at(self, place: Place) -> PenstockError:
        """The same error, pointing at ``place`` unless it already points somewhere."""
        if self.place is None:
            self.place = place
        return self


class InputError(PenstockError):
    """The user's input cannot be accepted: a file, a query, a name, a value."""

    exit_code = 1


class UsageError(PenstockError):
    """A command was called in a way it does not understand."""

    exit_code = 2


class UnreachableError(PenstockError):
    """A part of the system that is needed could not be reached or is missing."""

    exit_code = 3


class RunError(PenstockError):
    """The system failed while running."""

    exit_code = 4


class FullDiskError(RunError):
    """There is no room left on a disk; with some, the same work can go on."""


def listed(names: Iterable[str]) -> str:
    """Names as people list them.

    >>> listed(["ts", "home"])
    'ts, home'
    >>> listed([])
    'none'
    """
    return ", ".join(names) or "none"


def suggestion(wanted: str, names: Iterable[str], likeness: float = 0.6) -> str:
    """A "Did you mean …?" for a mistyped name, or an empty string if none is as alike as that.

    >>> suggestion("hom", ["ts", "home"])
    'Did you mean home?'
    >>> suggestion("zzz", ["ts", "home"])
    ''
    """
    folded = {name.lower(): name for name in names}
    near = get_close_matches(wanted.lower(), folded, n=1, cutoff=likeness)
    return f"Did you mean {folded[near[0]]}?" if near else ""
