"""The Python examples in the documentation run and print what they are about."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def _printed(page: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    block = re.findall(r"```python\n(.*?)```", text, re.S)[0]
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(block, page, "exec"), {})
    return out.getvalue().splitlines()


def test_balancing() -> None:
    assert _printed("balancing.md") == ["1 0 -> 1 1.0", "2 1 -> 0 1.0", "0.4 -> 0.0"]


def test_simulator() -> None:
    assert _printed("simulator.md") == ["True True"]


def test_hierarchy() -> None:
    assert _printed("hierarchy.md") == [
        "{'n1': 59.0, 'n2': 55.0, 'n3': 50.0}",
        "n2 -> n1 opOfferRequest n2#0.0 Unset 10 [A 10]",
        "n2 -> n3 opOfferRequest n2#0.0 Unset 10 [A 10]",
        "n1 -> n2 opOfferReply n2#0.0 Normal 0 []",
        "n3 -> n2 opOfferReply n2#0.0 High 10 [A 10]",
        "n2 -> n3 opOfferTransferRequest n2#0.0 Unset 10 [A 10]",
        "n2 -> n1 Clear n2#0.0 Unset 0 []",
        "n3 -> n2 opOfferTransferReply n2#0.0 Unset 10 [A 10]",
        "n2 => n3 A True",
        "n2 -> n3 Clear n2#0.0 Unset 10 [A 10]",
    ]


def test_window_join() -> None:
    assert _printed("window-join.md") == [
        "[{'name': 'x.org', 'port': 443}]",
        "[{'name': 'y.org', 'port': None}]",
        "1 0",
    ]
