"""Small pieces of files."""

from __future__ import annotations

import pytest

from penstock.feeds import files


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    """Files of some kilobytes are read in several blocks."""
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1024)
    return 1024
