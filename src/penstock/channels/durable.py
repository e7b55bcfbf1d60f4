"""Small files that are there whole or not at all, also after the power fails.

What one of them says decides which rows count, so numbers are sealed: a digit that the disk has
changed is noticed, and the file is refused by its name.
"""

from __future__ import annotations

import json
import os
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.errors import RunError

_DIGITS = 20
_LOOKS = 3
"""Who looks at a number that is being replaced in place may see half of each."""
RESTORE = "Restore the file from a backup, or start afresh with --fresh."


def read_text(path: Path) -> str | None:
    """The text of a file; None when there is none. One that is no text is refused by name."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise RunError(f"the file {path} is damaged (it holds no text)", hint=RESTORE) from None


def checksum(data: bytes | memoryview, so_far: int = 0) -> int:
    """A number that is another one if any bit of ``data`` is.

    >>> checksum(b"12") != checksum(b"13")
    True
    """
    return zlib.crc32(data, so_far)


def sealed(number: int) -> str:
    """A number as the text kept on disk; :func:`read_number` reads it back.

    >>> sealed(7)
    '7 6abf4a82'
    """
    return _sealed(str(number))


def _sealed(digits: str) -> str:
    return f"{digits} {checksum(digits.encode()):08x}"


def read_number(path: Path) -> int | None:
    """The number kept in a file; None when there is no file. A damaged one is refused by name."""
    found = ""
    for _ in range(_LOOKS):
        text = read_text(path)
        if text is None:
            return None
        digits = text.partition(" ")[0]
        if digits.isdecimal() and text == _sealed(digits):
            return int(digits)
        found = text[:40]
    raise RunError(
        f"the file {path} is damaged (it holds {found!r} instead of a sealed number)",
        hint=RESTORE,
    )


def write_number(path: Path, number: int, *, synced: bool = True) -> None:
    """Replaces the number kept in a file in one step."""
    write_text(path, sealed(number), synced=synced)


def move_number(path: Path, number: int) -> None:
    """Replaces the number kept in a file where it stands: a tenth of what a new file costs.

    It outlives a killed process. After a power failure it may be the former number.
    """
    try:
        file = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        write_number(path, number, synced=False)
        return
    try:
        # Always as long: nothing of what was there before is left behind it.
        os.pwrite(file, _sealed(f"{number:0{_DIGITS}d}").encode(), 0)
    finally:
        os.close(file)


def read_record(path: Path) -> Any:
    """The plain values kept in a file; None when there is no file. Damage is refused by name."""
    text = read_text(path)
    if text is None:
        return None
    written, _, check = text.rpartition(" ")
    if check != f"{checksum(written.encode()):08x}":
        raise RunError(f"the file {path} is damaged (its checksum is another)", hint=RESTORE)
    return json.loads(written)


def write_record(path: Path, record: object) -> None:
    """Replaces the plain values kept in a file in one step; :func:`read_record` reads them."""
    write_text(path, sealed_record(record))


def sealed_record(record: object) -> str:
    """Plain values as the text kept on disk; :func:`read_record` reads it back from a file."""
    written = json.dumps(record)
    return f"{written} {checksum(written.encode()):08x}"


_CLAIM = "epoch-"


def claim(folder: Path, epoch: int) -> None:
    """Takes note that the owner with this epoch has come.

    Nobody undoes a claim by coming late, however long after having decided to come.
    """
    create_once(folder / f"{_CLAIM}{epoch}", "")
    for other, path in numbered(folder, _CLAIM).items():
        if other < epoch:
            path.unlink(missing_ok=True)


def claimed(folder: Path) -> int:
    """The highest epoch whose owner has come; 0 before the first."""
    return max(numbered(folder, _CLAIM), default=0)


def numbered(folder: Path, prefix: str) -> dict[int, Path]:
    """What is called by this prefix and a number in a folder, by that number."""
    # Asked for with every commit: patterns and paths for all that lies there would cost more.
    names = os.listdir(folder) if folder.exists() else []  # noqa: PTH208
    numbers = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return {int(number): folder / f"{prefix}{number}" for number in numbers if number.isdecimal()}


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


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Has a file written that nobody sees before it is whole; not synced."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


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
