"""A disk in a hurry, small batches, and a clock that can be put forward."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.channels.ingest import entrance
from penstock.channels.ingest import file_ingest as ingest
from penstock.feeds import files

from channels.disk import careless
from channels.ingest.places import Clock


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    with careless():
        yield


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(ingest, "time", made)
    monkeypatch.setattr(entrance, "time", made)
    return made


@pytest.fixture
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "_ROWS_PER_COMMIT", 3)
    monkeypatch.setattr(files, "_BLOCK_BYTES", 64)
