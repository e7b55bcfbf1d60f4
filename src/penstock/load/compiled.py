"""Compiled inner loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., object])


def compiled(function: _F) -> _F:
    """The function compiled to machine code at its first call, and kept on disk for the next run.

    Sums keep their order, so results are those of the same loop in Python. Where nothing can be
    written to disk it is compiled in every run.
    """
    try:
        return cast(_F, numba.njit(cache=True)(function))
    except RuntimeError:  # nowhere to keep it: then it is compiled in every process
        return cast(_F, numba.njit(function))
