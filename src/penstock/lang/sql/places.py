"""Where in a query's text something stands, so that an error can point at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import InputError, Place


@dataclass(frozen=True)
class WrittenText:
    """A text a person wrote, and what it is called in messages."""

    origin: str
    text: str

    def at(self, start: int, length: int = 1) -> Place:
        """The place of ``length`` characters from offset ``start`` on.

        >>> WrittenText("query", "SELECT a\\nFROM b").at(14).line
        2
        """
        before = (self.text[:start] + ".").splitlines()
        return Place(self.origin, self.text, len(before), len(before[-1]), length)

    def place(self, node: exp.Expr) -> Place:
        """The place of ``node``: its own token, else all of its parts, else what it is part of."""
        here: exp.Expr | None = node
        while here is not None:
            span = _span(here)
            if span:
                return self.at(span[0], span[1] - span[0] + 1)
            here = here.parent
        return self.at(0)

    def word(self, word: str, node: exp.Expr) -> Place:
        """The place of ``word`` that is part of ``node``: the last one before it, else after it."""
        span = _span(node)
        start = span[0] if span else len(self.text)
        pattern = r"\b" + r"\s+".join(map(re.escape, word.split())) + r"\b"
        found = list(re.finditer(pattern, self.text, re.IGNORECASE))
        if not found:
            return self.place(node)
        before = [match for match in found if match.start() < start]
        nearest = before[-1] if before else found[0]
        return self.at(nearest.start(), len(nearest.group()))

    def error(self, node: exp.Expr, what: str, hint: str = "") -> InputError:
        """The error that ``what`` is wrong with ``node``."""
        return InputError(what, hint=hint, place=self.place(node))

    @contextmanager
    def pointing_at(self, node: exp.Expr) -> Iterator[None]:
        """Lets errors that do not know their place point at ``node``."""
        try:
            yield
        except InputError as error:
            raise error.at(self.place(node)) from None

    def quoted(self, node: exp.Expr) -> str:
        """``node`` as it was written, shortened to one line."""
        span = _span(node, whole=True)
        text = self._closed(*span) if span else node.sql("spark")
        return " ".join(text.split())

    def _closed(self, start: int, last: int) -> str:
        """The text from ``start`` to ``last``, with the parentheses after it that it opened."""
        end = last + 1
        while self.text.count("(", start, end) > self.text.count(")", start, end):
            end = self.text.find(")", end) + 1 or len(self.text)
        return self.text[start:end]


def _span(node: exp.Expr, whole: bool = False) -> tuple[int, int] | None:
    """First and last offset of a node: its own token if it has one, unless ``whole`` is asked."""
    if "start" in node.meta and not whole:
        return node.meta["start"], node.meta["end"]
    parts = [part.meta for part in node.walk() if "start" in part.meta]
    if not parts:
        return None
    return min(part["start"] for part in parts), max(part["end"] for part in parts)
