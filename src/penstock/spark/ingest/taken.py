"""Which files of a directory were accepted, in which order: an order that must never change."""

from __future__ import annotations

import json
import os
from pathlib import Path

from penstock.errors import RunError
from penstock.spark.channels.durable import read_text, write_text


class TakenFiles:
    """The names of accepted files, in order, kept in a file that only grows.

    Each line is a JSON string, so a name may hold anything, also a line end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
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
