"""Which queries of a deployment were there when it first ran, and which were added since."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from penstock.channels.durable import read_record, write_record

_NAME = "generations"


def generations(folder: Path, queries: Iterable[str]) -> dict[str, int]:
    """The generation of each query, by what the state in a folder knows; new ones are the next.

    Where nothing has run yet all are the first. State of former versions knows what has begun.
    """
    names, known = list(queries), _known(folder)
    if known is None:
        begun = {path.parent.name for path in folder.glob("fragments/*/checkpoint-*")}
        return {name: int(bool(begun) and name not in begun) for name in names}
    next_one = max(known.values(), default=-1) + 1
    return {name: known.get(name, next_one) for name in names}


def remember(folder: Path, given: dict[str, int]) -> None:
    """Keeps the generations for good; those of queries that are gone for now as well."""
    known = _known(folder) or {}
    if known | given != known:
        write_record(folder / _NAME, known | given)


def forget(folder: Path) -> None:
    """Lets all queries be the first again."""
    (folder / _NAME).unlink(missing_ok=True)


def _known(folder: Path) -> dict[str, int] | None:
    known: dict[str, int] | None = read_record(folder / _NAME)
    return known
