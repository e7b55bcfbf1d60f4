"""A catalog in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from control.toys import TroubledCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[TroubledCatalog]:
    made = TroubledCatalog(f"sqlite:///{tmp_path}/catalog.db")
    made.prepare()
    yield made
    made.close()
