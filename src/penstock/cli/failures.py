"""Errors on their way to the terminal: our own as their text, bugs as one line and a file."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import textwrap
import traceback
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from typer.exceptions import TyperException

from penstock import __version__
from penstock.errors import PenstockError, RunError

LOG_FOLDER: ContextVar[Path | None] = ContextVar("LOG_FOLDER", default=None)
"""Where a command keeps its logs, once it knows."""


def reported(error: BaseException) -> int:
    """Tells a person about an error on standard error; the exit code to leave with."""
    if isinstance(error, PenstockError):
        print(_wrapped(str(error)), file=sys.stderr)
        return error.exit_code
    print(_wrapped(_bug_line(error)), file=sys.stderr)
    return RunError.exit_code


def reported_as_json(error: BaseException) -> int:
    """Tells a script about an error on standard output, where it looks for the answer.

    People find it on standard error as always: what a script keeps for itself nobody reads.
    """
    record = _record(error)
    print(json.dumps(record))
    print(_wrapped(record["text"]), file=sys.stderr)
    return int(record["exit_code"])


def _record(error: BaseException) -> dict[str, Any]:
    """What the REST API says of an error."""
    if isinstance(error, PenstockError):
        told = {"error": error.what, "hint": error.hint, "text": str(error)}
        return {**told, "exit_code": error.exit_code}
    if isinstance(error, TyperException):
        text = error.format_message()
        return {"error": text, "hint": "", "text": text, "exit_code": error.exit_code}
    text = "it was not confirmed" if isinstance(error, typer.Abort) else _bug_line(error)
    code = 1 if isinstance(error, typer.Abort) else RunError.exit_code
    return {"error": text, "hint": "", "text": text, "exit_code": code}


def _wrapped(text: str) -> str:
    """The text with lines that end between words, where a terminal would break them anywhere."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(
        line if len(line) <= width or line.startswith(" ") else wrapped(line, width)
        for line in text.splitlines()
    )


def wrapped(line: str, width: int) -> str:
    """A line as several; paths and commands stay whole.

    >>> print(wrapped("no file /a/long-path/to/it. Is it there?", 20))
    no file
    /a/long-path/to/it.
    Is it there?
    """
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def _bug_line(error: BaseException) -> str:
    reason = " ".join(str(error).split())[:200]
    what = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    try:
        path = _written(error)
    except OSError as problem:
        return f"penstock failed: {what}; this is a bug (no details: {problem.strerror})"
    return f"penstock failed: {what}; this is a bug. Please report it with {path}"


def _written(error: BaseException) -> Path:
    """The file with everything a developer needs."""
    text = f"penstock {__version__}, Python {sys.version}\n{sys.argv}\n\n" + "".join(
        traceback.format_exception(error)
    )
    name = f"penstock-bug-{datetime.now():%Y%m%d-%H%M%S}.txt"
    folder = LOG_FOLDER.get()
    if folder is not None and folder.is_dir():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        return path
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=name[:-4] + "-", suffix=".txt", delete=False
    ) as file:
        file.write(text)
    return Path(file.name)
