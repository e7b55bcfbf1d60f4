"""What commands print: lines and tables for people, JSON for scripts."""

from __future__ import annotations

import io
import json as json_text
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Annotated

import typer

from penstock.errors import UnreachableError

_HOME = "\x1b[H\x1b[2J"
"""To the upper left corner of an empty screen."""
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, errors included.")]


def say(text: str) -> None:
    """Tells how it goes on, beside what is asked for."""
    print(text, file=sys.stderr, flush=True)


def print_json(answer: object) -> None:
    """An answer as scripts read it."""
    from penstock.control.api_model import plain

    print(json_text.dumps(plain(answer), indent=2), flush=True)


def print_json_line(answer: object) -> None:
    """The same in one line, where more will follow."""
    from penstock.control.api_model import plain

    print(json_text.dumps(plain(answer)), flush=True)


def print_line(text: str) -> None:
    """A line; in a terminal that is too narrow for it, what does not fit is set in."""
    whole = re.sub(r"(\d) s\b", "\\1\N{NO-BREAK SPACE}s", text)
    filled = textwrap.fill(whole, _width(), subsequent_indent=" " * 10, break_on_hyphens=False)
    print(filled.replace("\N{NO-BREAK SPACE}", " "), flush=True)


def _width() -> int:
    """How much room there is in a line; in a file or a pipe, as much as it takes."""
    is_narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if is_narrow else 100_000


def print_table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], otherwise: str) -> None:
    """Aligned columns; the last one goes on in further lines where the terminal is too narrow."""
    if not rows:
        print(otherwise)
        return
    widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads) - 1)]
    room = max(20, _width() - sum(widths) - 2 * len(widths) - 1)
    for row in [heads, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        start = f" {''.join(f'{cell}  ' for cell in cells)}"
        last = textwrap.wrap(row[-1], room, break_long_words=False) or [""]
        print(f"{start}{last[0]}".rstrip())
        for more in last[1:]:
            print(f"{' ' * len(start)}{more}")


def clock(at_s: float) -> str:
    """A time of today, as people read it."""
    return time.strftime("%H:%M:%S", time.localtime(at_s))


def watched(show: Callable[[], None], every_s: float = 1.0) -> None:
    """Shows something again and again until Ctrl-C, in a terminal in the same place.

    What cannot be had just now is said and tried again.
    """
    while True:
        shown = io.StringIO()
        try:
            with redirect_stdout(shown):
                show()
        except UnreachableError as error:
            shown.write(f"{error}\n")
        begin = _HOME if sys.stdout.isatty() else ""
        print(f"{begin}{shown.getvalue()}", end="", flush=True)
        time.sleep(every_s)
