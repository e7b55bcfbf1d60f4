"""A catalog in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from control.toys import TroubledCatalog, empty_catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[TroubledCatalog]:
    made = empty_catalog(tmp_path / "catalog.db")
    yield made
    made.close()
