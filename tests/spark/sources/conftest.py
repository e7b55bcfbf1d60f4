"""These tests are about order, not about waiting for a disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from channels.disk import careless


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    with careless():
        yield
