"""Arguments that must be constants, because what is wrong with them would stop a running query.

A pattern that is no pattern, or one that a row brings along, fails when it is first used; so it is
looked at when the query is built. Java reads regular expressions in the end: refused here is what
no dialect accepts.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence

from penstock.errors import InputError
from penstock.model.time_patterns import time_pattern

Constants = Sequence[object]
NOT_CONSTANT = object()
"""Stands for an argument that is no constant."""

_WRONG_EVERYWHERE = {
    "missing ), unterminated subpattern": "a ( without its )",
    "unbalanced parenthesis": "a ) without its (",
    "unterminated character set": "a [ without its ]",
}
_LIKE = re.compile(r"[^\\]*(\\[_%\\][^\\]*)*")


def check_constants(function: str, arguments: Constants) -> None:
    """Raises if an argument must be a constant and is not, or not one that can be.

    >>> check_constants("rlike", [NOT_CONSTANT, "^a"])
    >>> check_constants("rlike", [NOT_CONSTANT, "(a"])
    Traceback (most recent call last):
    penstock.errors.InputError: '(a' is no regular expression: it has a ( without its )
    """
    check = _CHECKS.get(function)
    if check is not None:
        check(arguments)


def _round(arguments: Constants) -> None:
    if len(arguments) > 1:
        _constant(arguments[1], "the count of digits")


def _like(arguments: Constants) -> None:
    pattern = arguments[1]
    if isinstance(pattern, str) and not _LIKE.fullmatch(pattern):
        raise InputError(
            f"{pattern!r} is no pattern: a backslash stands before none of %, _ and \\",
            hint="Write two backslashes for one.",
        )


def _rlike(arguments: Constants) -> None:
    _groups(_constant(arguments[1], "a regular expression"))


def _regexp_extract(arguments: Constants) -> None:
    pattern = _constant(arguments[1], "a regular expression")
    groups = _groups(pattern)
    asked = _constant(arguments[2], "the number of a group") if len(arguments) > 2 else 1
    if groups is None or not isinstance(asked, int) or 0 <= asked <= groups:
        return
    known = "1 group" if groups == 1 else f"{groups} groups"
    raise InputError(
        f"{pattern!r} has {known}; {asked} is none of them",
        hint="Put what is wanted in ( ), or ask for group 0, which is all that fits.",
    )


def _to_timestamp(arguments: Constants) -> None:
    time_pattern(str(_constant(arguments[1], "the pattern of a time")))


def _constant(argument: object, what: str) -> object:
    if argument is NOT_CONSTANT:
        raise InputError(f"{what} must be a constant", hint="Write it out.")
    return argument


def _groups(pattern: object) -> int | None:
    """How many groups a regular expression has; None where only Java can tell."""
    if not isinstance(pattern, str):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern).groups
    except re.error as error:
        if error.msg in _WRONG_EVERYWHERE:
            wrong = _WRONG_EVERYWHERE[error.msg]
            raise InputError(f"{pattern!r} is no regular expression: it has {wrong}") from None
    except (RecursionError, OverflowError):
        pass
    return None


_CHECKS: Mapping[str, Callable[[Constants], None]] = {
    "round": _round,
    "like": _like,
    "rlike": _rlike,
    "regexp_extract": _regexp_extract,
    "to_timestamp": _to_timestamp,
}
