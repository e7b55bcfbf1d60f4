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

RECORD = """
from typing import NamedTuple

class {name}(NamedTuple):
    number: int
"""
TAKES_IT = """
from inner import {name}
from penstock.load.compiled import compiled

@compiled
def number(record):
    return record.number
"""


def _said(digest: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """What the loop gives once it is loaded afresh, while the sources have this digest."""
    monkeypatch.setattr(kept, "sources_digest", lambda module: digest)
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


def test_what_was_kept_of_a_record_that_is_gone_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new version has renamed it, and finds what the former one left."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("Former", "Latter"):
        (tmp_path / "inner.py").write_text(RECORD.format(name=name), encoding="utf-8")
        (tmp_path / "loop.py").write_text(TAKES_IT.format(name=name), encoding="utf-8")
        for module in ("inner", "loop"):
            monkeypatch.delitem(sys.modules, module, raising=False)
        loop = import_module("loop")
        assert loop.number(getattr(import_module("inner"), name)(3)) == 3


def test_a_digest_covers_what_a_module_imports_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digests() -> list[str]:
        for function in (kept.sources_digest, kept._imported, kept._text, kept._path):
            function.cache_clear()
        return [sources_digest(f"penstock.{name}") for name in ("outer", "inner", "apart")]

    monkeypatch.setattr(kept, "_PACKAGE", tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/__init__.py").write_text("")
    (tmp_path / "deep/leaf.py").write_text("NUMBER = 1")
    (tmp_path / "outer.py").write_text("from penstock.inner import (\n    LOOP,\n)")
    (tmp_path / "inner.py").write_text("from penstock.deep import leaf")
    (tmp_path / "apart.py").write_text("from penstock.load.compiled import compiled")
    first = digests()
    assert len(set(first)) == 3 and digests() == first
    (tmp_path / "deep/leaf.py").write_text("NUMBER = 2")
    second = digests()
    assert [text in first for text in second] == [False, False, True]
    (tmp_path / "apart.py").write_text("")
    third = digests()
    assert [text in second for text in third] == [True, True, False]


def test_the_digest_is_what_functions_are_kept_under() -> None:
    @compiled
    def one() -> int:
        return 1

    assert one._cache._cache_file._source_stamp == sources_digest(__name__)  # type: ignore[attr-defined]
