"""A disk that can be watched, and one on which a process dies or space runs out."""

from __future__ import annotations

import errno
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHANGES = ("link", "replace", "unlink", "fsync")


class Died(BaseException):
    """The process ends here: nothing after it runs, not even what cleans up."""


@contextmanager
def dying_at(step: int, *, after: bool) -> Iterator[Counter[str]]:
    """The process dies at the ``step``-th change of the disk, just before or just after it.

    Gives the count of changes; where it stays below ``step`` nobody has died.
    """
    made: Counter[str] = Counter()

    def dangerous(name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            made[name] += 1
            if made.total() > step:
                raise Died
            if made.total() == step and not after:
                raise Died
            result = change(*args, **kwargs)
            if made.total() == step:
                raise Died
            return result

        return run

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGES:
            patch.setattr(os, name, dangerous(name, getattr(os, name)))
        yield made


@contextmanager
def watched() -> Iterator[Counter[str]]:
    """Counts files opened, folders listed and the entries listed in them."""
    counts: Counter[str] = Counter()
    listdir, open_file = os.listdir, io.open

    def counted_listdir(*args: Any) -> list[Any]:
        found = listdir(*args)
        counts.update(folders=1, entries=len(found))
        return found

    def counted_open(*args: Any, **kwargs: Any) -> Any:
        counts.update(files=1)
        return open_file(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "listdir", counted_listdir)
        patch.setattr(io, "open", counted_open)
        yield counts


def names(folder: Path) -> list[str]:
    """The names of all files in a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


def full(*args: object, **kwargs: object) -> None:
    """In place of something that writes."""
    raise OSError(errno.ENOSPC, "No space left on device")


@contextmanager
def careless() -> Iterator[None]:
    """A disk that does not wait for anything to be safe: for tests of thousands of changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
