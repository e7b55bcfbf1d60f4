"""Rows that were set aside, in words: how many of each kind."""

from __future__ import annotations

from collections.abc import Mapping

_WORDS = {"untimed": "without an event time", "ahead": "too far ahead"}


def set_aside_text(kinds: Mapping[str, int], reasons: Mapping[str, str] | None = None) -> str:
    """The rows of each kind, and why one of them was set aside where the kind does not say it.

    >>> set_aside_text({"malformed": 0, "late": 1200, "untimed": 1, "ahead": 1, "skipped": 2})
    '1,200 late, 1 without an event time, 1 too far ahead, 2 files skipped'
    >>> set_aside_text({"malformed": 3}, {"malformed": "n: 'x' is no int"})
    "3 malformed (such as n: 'x' is no int)"
    """
    return ", ".join(_phrase(kind, n, reasons or {}) for kind, n in kinds.items() if n)


def _phrase(kind: str, number: int, reasons: Mapping[str, str]) -> str:
    if kind == "skipped":
        text = f"{number:,} {'file' if number == 1 else 'files'} skipped"
    else:
        text = f"{number:,} {_WORDS.get(kind, kind)}"
    is_told = kind in ("malformed", "skipped") and kind in reasons
    return f"{text} (such as {reasons[kind].removesuffix('.')})" if is_told else text
