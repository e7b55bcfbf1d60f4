"""Which tests need what: the folder decides, unless a test says otherwise itself."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
MARKS = {"core", "spark", "system"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not MARKS.intersection(mark.name for mark in item.iter_markers()):
            item.add_marker(_mark_of(item.path))


def _mark_of(path: Path) -> str:
    """``spark`` or ``system`` for the folders of that name, ``core`` for all else.

    The examples in the source are all ``core``: they show what needs no session.
    """
    folder = path.relative_to(HERE).parts[0] if path.is_relative_to(HERE) else ""
    return folder if folder in {"spark", "system"} else "core"
