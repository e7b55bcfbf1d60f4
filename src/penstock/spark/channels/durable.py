"""Small files that are there whole or not at all, also after the power fails."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from penstock.errors import RunError


def read_text(path: Path) -> str | None:
    """The text of a file; None when there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def read_number(path: Path) -> int | None:
    """The number kept in a file; None when there is no file. A damaged one is refused by name."""
    text = read_text(path)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise RunError(
            f"the file {path} is damaged (it holds {text[:40]!r} instead of a number)",
            hint="Restore the file from a backup, or start afresh with --fresh.",
        ) from None


def write_text(path: Path, text: str, *, synced: bool = True) -> None:
    """Replaces the file's text in one step.

    Not ``synced`` is quicker and outlives a killed process, but not a power failure.
    """
    temporary = _written_beside(path, text, synced)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def create_once(path: Path, text: str) -> bool:
    """Creates the file with this text unless it exists; whether it was created.

    Of several processes that try at once exactly one succeeds.
    """
    temporary = _written_beside(path, text)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _written_beside(path: Path, text: str, synced: bool = True) -> Path:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if synced:
                os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary
