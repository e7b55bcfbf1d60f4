"""Compiled inner loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., object])
_PACKAGE = Path(__file__).parents[1]
_FOLDERS = ("load", "place", "balance", "sim")


def compiled(function: _F) -> _F:
    """The function compiled to machine code at its first call, and kept on disk for the next run.

    Sums keep their order, so results are those of the same loop in Python. What is kept counts
    only as long as no file with compiled loops has changed. Where nothing can be written to disk
    it is compiled in every run.
    """
    try:
        dispatcher = numba.njit(cache=True)(function)
    except RuntimeError:  # nowhere to keep it: then it is compiled in every process
        return cast(_F, numba.njit(function))
    _stamp(dispatcher)
    return cast(_F, dispatcher)


def _stamp(dispatcher: Any) -> None:
    """Ties what is kept to the text of all loops.

    numba looks only at the file of the function itself, and would go on using what it once made
    of functions and constants from other files: with records that lie elsewhere in memory by now.
    """
    dispatcher._cache._cache_file._source_stamp = sources_digest()


@cache
def sources_digest() -> str:
    """A digest of every file that compiled loops come from."""
    digest = blake2b(digest_size=16)
    for folder in _FOLDERS:
        for path in sorted((_PACKAGE / folder).glob("*.py")):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
