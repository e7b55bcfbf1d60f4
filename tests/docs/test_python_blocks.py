"""The Python examples in the documentation run and print what they are about."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def _printed(page: str) -> list[str]:
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(block, page, "exec"), {})
    return out.getvalue().splitlines()


def test_balancing() -> None:
    assert _printed("balancing.md") == ["1 0 -> 1 1.0", "2 1 -> 0 1.0", "0.4 -> 0.0"]


def test_simulator() -> None:
    assert _printed("simulator.md") == ["True True"]
