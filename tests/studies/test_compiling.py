"""Every compiled loop used once: nothing of it is left for the first user to wait for."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

from numba.core.registry import CPUDispatcher

import penstock
from penstock.studies.compiling import use_every_loop

FOLDERS = ("balance", "kernels", "load", "place", "power.kernels", "sim")


def _loops() -> Iterator[CPUDispatcher]:
    for folder in FOLDERS:
        package = importlib.import_module(f"{penstock.__name__}.{folder}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for _, one in inspect.getmembers(module, lambda it: isinstance(it, CPUDispatcher)):
                if one.py_func.__module__ == module.__name__:
                    yield one


def _has_kept_code(loop: CPUDispatcher) -> bool:
    """Whether its machine code is on disk for the next process, made from the sources of now."""
    return bool(loop._cache._cache_file._load_index())


def test_every_loop_is_compiled_and_kept() -> None:
    use_every_loop()
    loops = list(_loops())
    assert len(loops) > 50
    assert [loop.py_func.__qualname__ for loop in loops if not _has_kept_code(loop)] == []
