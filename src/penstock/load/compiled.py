"""Compiled inner loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., object])
_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^\s*from (penstock[\w.]*) import (?:\(([^)]*)\)|(.+))", re.MULTILINE)


def compiled(function: _F) -> _F:
    """The function compiled to machine code at its first call, and kept on disk for the next run.

    Sums keep their order, so results are those of the same loop in Python. What is kept counts
    only as long as neither its file nor one that it imports has changed. Where nothing can be
    written to disk it is compiled in every run.
    """
    try:
        dispatcher = numba.njit(cache=True)(function)
    except RuntimeError:  # nowhere to keep it: then it is compiled in every process
        return cast(_F, numba.njit(function))
    _stamp(dispatcher, function.__module__)
    return cast(_F, dispatcher)


def _stamp(dispatcher: Any, module: str) -> None:
    """Ties what is kept to the text of all that the loop may use.

    numba looks only at the file of the function itself, and would go on using what it once made
    of functions and constants from other files: with records that lie elsewhere in memory by now.
    """
    file = dispatcher._cache._cache_file
    file._source_stamp = sources_digest(module)
    file._load_index = partial(_load_or_forget, file._load_index)


def _load_or_forget(load: Callable[[], dict[Any, Any]]) -> dict[Any, Any]:
    """What is kept of a function; nothing if it was made with records that no longer exist.

    numba reads these before it looks whether they still count.
    """
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


@cache
def sources_digest(module: str) -> str:
    """A digest of a module's file and of every file of the package that it imports, or these do."""
    digest = blake2b(digest_size=16)
    known, left = {module}, [module]
    while left:
        for name in _imported(left.pop()):
            if name not in known:
                known.add(name)
                left.append(name)
    for name in sorted(known):
        digest.update(name.encode() + _text(name).encode())
    return digest.hexdigest()


@cache
def _imported(module: str) -> tuple[str, ...]:
    return tuple(_names(_text(module)))


def _names(text: str) -> Iterator[str]:
    """The modules of the package that a text imports from, and those it imports by name.

    >>> list(_names("from penstock.load import arrays"))
    ['penstock.load', 'penstock.load.arrays']
    """
    for package, within, line in _IMPORT.findall(text):
        yield package
        if _path(package).name == "__init__.py":
            for name in re.findall(r"\w+", within or line):
                if _path(f"{package}.{name}").exists():
                    yield f"{package}.{name}"


@cache
def _text(module: str) -> str:
    path = _path(module)
    return path.read_text(encoding="utf-8") if path.exists() else ""


@cache
def _path(module: str) -> Path:
    """The file of a module of the package, whether there is one or not."""
    path = _PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
