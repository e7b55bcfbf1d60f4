"""Which files of a directory were accepted, in which order: an order that must never change."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from penstock.channels.durable import numbered, read_text, write_text
from penstock.errors import RunError

_NAME = "taken-"

Marks = dict[str, tuple[int, int]]


class TakenFiles:
    """The names of accepted files, in order, kept in a file that only grows.

    Each owner has a file of its own, which begins as that of the owner before: what one that was
    replaced still adds counts nowhere. Each line is JSON, so a name may hold anything, also a line
    end; ``marks`` tell the size of a file and when it was written to, to know it again by.
    """

    def __init__(self, folder: Path, epoch: int) -> None:
        self._path = path = _taken_over(folder, epoch)
        *whole, rest = (read_text(path) or "").split("\n")
        self.names, self.marks = _parsed(whole, path)
        self._known = set(self.names)
        if rest:
            # Cut off while it was written: that file is accepted anew.
            write_text(path, "".join(f"{line}\n" for line in whole))

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def add(self, names: list[str], folder: Path) -> None:
        """Adds names in a folder for good, before anything is made of their files."""
        if not names:
            return
        marks = {name: _mark(folder / name) for name in names}
        self.marks |= {name: mark for name, mark in marks.items() if mark is not None}
        with self._path.open("a", encoding="utf-8") as log:
            log.writelines(f"{json.dumps([name, marks[name]])}\n" for name in names)
            log.flush()
            os.fsync(log.fileno())
        self.names += names
        self._known.update(names)


@dataclass(frozen=True)
class TakenBefore:
    """What was accepted so far, for those who only want to know."""

    names: list[str]
    marks: Marks


def taken_before(folder: Path) -> TakenBefore:
    """The files that the newest owner of a stream has accepted."""
    lists = sorted(numbered(folder, _NAME).items())
    if not lists:
        return TakenBefore([], {})
    path = lists[-1][1]
    return TakenBefore(*_parsed((read_text(path) or "").split("\n")[:-1], path))


def _parsed(lines: list[str], path: Path) -> tuple[list[str], Marks]:
    try:
        entries = [json.loads(line) for line in lines]
    except ValueError:
        raise RunError(
            f"the list of accepted files {path} is damaged",
            hint="Restore the file from a backup, or start afresh with --fresh.",
        ) from None
    # Lists of former versions hold names alone.
    pairs = [entry if isinstance(entry, list) else (str(entry), None) for entry in entries]
    return [name for name, _ in pairs], {name: tuple(mark) for name, mark in pairs if mark}


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        there = path.stat()
    except OSError:
        return None
    return there.st_size, there.st_mtime_ns


def _taken_over(folder: Path, epoch: int) -> Path:
    """The list of the owner with this epoch; those before the last owner's are deleted."""
    mine = folder / f"{_NAME}{epoch}"
    before = [path for other, path in sorted(numbered(folder, _NAME).items()) if other < epoch]
    if not mine.exists():
        write_text(mine, (read_text(before[-1]) or "") if before else "")
    for path in before[:-1]:
        path.unlink(missing_ok=True)
    return mine
