"""The functions of Python operators: found by name, and held to the time of their rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InputError
from penstock.feeds.pieces import value_of
from penstock.lang.beside import module_beside

UserFunction = Callable[[pa.RecordBatch], pa.RecordBatch | Iterable[pa.RecordBatch]]


def user_function(name: str, folder: Path | None = None) -> UserFunction:
    """The function called ``module:function``: of a module in ``folder``, else of one installed."""
    module, _, attribute = name.partition(":")
    path = None if folder is None else module_beside(module, folder)
    try:
        found = import_module(module) if path is None else _loaded(path)
        function: UserFunction = getattr(found, attribute)
        return function
    except (ImportError, AttributeError, SyntaxError) as error:
        where = "" if folder is None else f" in {folder}, or"
        raise InputError(
            f"the Python operator {name} cannot be loaded: {error}",
            hint=f"Check the name; the module must be{where} importable, for example through "
            "PYTHONPATH.",
        ) from None


def _loaded(path: Path) -> ModuleType:
    """The module in a file, under a name of its own: two folders may both have a ``cleaning``."""
    name = f"penstock_{sha256(str(path).encode()).hexdigest()[:16]}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    # It may import what lies beside it.
    sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def check_same_times(name: str, given: pa.ChunkedArray, taken: pa.Array) -> None:
    """Raises if a function gives a row an event time that none of the rows it took has.

    Windows are closed by the times of the rows that came in: a row moved to another time would be
    in a window that is closed already, or hold one open, without a word.
    """
    known = pc.is_in(given, value_set=taken.cast(given.type))
    if pc.all(known, min_count=0).as_py():
        return
    other = value_of(given.filter(pc.invert(known))[0])
    raise InputError(
        f"the Python operator {name} gives a row the event time {other}, which none of the rows "
        "it took has",
        hint="Pass the event time on as it is; a changed time can go into a column of its own.",
    )
