"""Compiled loops are kept on disk, and compiled again when any of their sources changed."""

import subprocess
import sys
from pathlib import Path

from penstock.load.compiled import compiled, sources_digest

LOOP = """
from inner import NUMBER
from penstock.load.compiled import compiled

@compiled
def number():
    return NUMBER

print(number())
"""


def _said(folder: Path, digest: str) -> int:
    """What a process prints in which the sources have this digest."""
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); sys.dont_write_bytecode = True\n"
        f"import penstock.load.compiled as kept; kept.sources_digest = lambda: {digest!r}\n"
        "import loop"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_a_constant_from_another_file_that_changed_is_seen(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    inner = tmp_path / "inner.py"
    inner.write_text("NUMBER = 1\n", encoding="utf-8")
    assert _said(tmp_path, "first") == 1
    inner.write_text("NUMBER = 2\n", encoding="utf-8")
    assert _said(tmp_path, "first") == 1, "numba sees other files by now: is the digest needed?"
    assert _said(tmp_path, "second") == 2


def test_the_digest_is_what_functions_are_kept_under() -> None:
    @compiled
    def one() -> int:
        return 1

    assert one._cache._cache_file._source_stamp == sources_digest()  # type: ignore[attr-defined]
