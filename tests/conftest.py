"""Which tests need what: the folder decides, unless a test says otherwise itself."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Generator, Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
import typer.testing
from _pytest.doctest import DoctestModule
from hypothesis import settings

from mock_cluster import MockCluster

# Enough to find what is wrong in the working loop; HYPOTHESIS_PROFILE=thorough looks further.
settings.register_profile("quick", max_examples=12, deadline=None, database=None)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

HERE = Path(__file__).parent
# What was measured on the machine of whoever runs the tests must not change them.
os.environ["PENSTOCK_COSTS"] = str(HERE / "no-costs-of-this-machine.json")
_topics = count()
MARKS = {"core", "spark", "system", "soak"}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects without looking for garbage, and leaves what it made out of later searches.

    All of it stays to the end; going through it again and again took a sixth of the time. What
    tests make is mostly gone as soon as nobody refers to it: looking for the rest can wait longer.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.set_threshold(50_000, 20, 100)
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[object], list[object]]:
    """Examples are looked for in the sources alone: tests are no place for them."""
    found = yield
    if file_path.is_relative_to(HERE):
        return [collector for collector in found if not isinstance(collector, DoctestModule)]
    return found


# Libraries that look at the very end for what was never let go shall find nothing.
atexit.register(gc.unfreeze)

# Making the commands takes longer than running most of them: once for all tests is enough.
typer.testing._get_command = cache(typer.testing._get_command)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not MARKS.intersection(mark.name for mark in item.iter_markers()):
            item.add_marker(_mark_of(item.path))


@cache
def _mark_of(path: Path) -> str:
    """``spark`` or ``system`` for the folders of that name, ``core`` for all else.

    The examples in the source are all ``core``: they show what needs no session.
    """
    folder = path.relative_to(HERE).parts[0] if path.is_relative_to(HERE) else ""
    return folder if folder in {"spark", "system"} else "core"


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as running:
        yield running


@pytest.fixture
def topic() -> str:
    """A topic that no other test uses."""
    return f"topic{next(_topics)}"
