"""What notebooks show: tables as HTML, in which what is in names and rows is only ever text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape


def is_notebook() -> bool:
    """Whether this program runs in a notebook: whoever looks at it sees what is printed at once."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and hasattr(running, "kernel")


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_heading(name: str, told: str) -> str:
    """What a thing is called, and a few words about it."""
    return f"<p><b>{escape(name)}</b> {escape(told)}</p>"


def html_code(text: str) -> str:
    """Text as it was written."""
    return f"<pre>{escape(text)}</pre>"
