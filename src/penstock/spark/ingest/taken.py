"""Which files of a directory were accepted, in which order: an order that must never change."""

from __future__ import annotations

import json
import os
from pathlib import Path

from penstock.errors import RunError
from penstock.spark.channels.durable import numbered, read_text, write_text

_NAME = "taken-"


class TakenFiles:
    """The names of accepted files, in order, kept in a file that only grows.

    Each owner has a file of its own, which begins as that of the owner before: what one that was
    replaced still adds counts nowhere. Each line is a JSON string, so a name may hold anything,
    also a line end.
    """

    def __init__(self, folder: Path, epoch: int) -> None:
        self._path = path = _taken_over(folder, epoch)
        *whole, rest = (read_text(path) or "").split("\n")
        try:
            self.names = [str(json.loads(line)) for line in whole]
        except ValueError:
            raise RunError(
                f"the list of accepted files {path} is damaged",
                hint="Restore the file from a backup, or start afresh with --fresh.",
            ) from None
        self._known = set(self.names)
        if rest:
            # Cut off while it was written: that file is accepted anew.
            write_text(path, "".join(f"{line}\n" for line in whole))

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def add(self, names: list[str]) -> None:
        """Adds names for good, before anything is made of their files."""
        if not names:
            return
        with self._path.open("a", encoding="utf-8") as log:
            log.writelines(f"{json.dumps(name)}\n" for name in names)
            log.flush()
            os.fsync(log.fileno())
        self.names += names
        self._known.update(names)


def _taken_over(folder: Path, epoch: int) -> Path:
    """The list of the owner with this epoch; those before the last owner's are deleted."""
    mine = folder / f"{_NAME}{epoch}"
    before = [path for other, path in sorted(numbered(folder, _NAME).items()) if other < epoch]
    if not mine.exists():
        write_text(mine, (read_text(before[-1]) or "") if before else "")
    for path in before[:-1]:
        path.unlink(missing_ok=True)
    return mine
