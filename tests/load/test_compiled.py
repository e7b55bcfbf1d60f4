"""Compiled loops are kept on disk, and compiled again when any of their sources changed."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from penstock.load import compiled as kept
from penstock.load.compiled import compiled, sources_digest

LOOP = """
from inner import NUMBER
from penstock.load.compiled import compiled

@compiled
def number():
    return NUMBER
"""


def _said(digest: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """What the loop gives once it is loaded afresh, while the sources have this digest."""
    monkeypatch.setattr(kept, "sources_digest", lambda: digest)
    for name in ("inner", "loop"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return int(import_module("loop").number())


def test_a_constant_from_another_file_that_changed_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    inner = tmp_path / "inner.py"
    inner.write_text("NUMBER = 1\n", encoding="utf-8")
    assert _said("first", monkeypatch) == 1
    inner.write_text("NUMBER = 2\n", encoding="utf-8")
    assert _said("first", monkeypatch) == 1, "numba sees other files by now: is the digest needed?"
    assert _said("second", monkeypatch) == 2


def test_the_digest_is_what_functions_are_kept_under() -> None:
    @compiled
    def one() -> int:
        return 1

    assert one._cache._cache_file._source_stamp == sources_digest()  # type: ignore[attr-defined]
