"""Where runs are found again: in memory, and in a folder that many tasks share.

Everything in here is disposable. A run's name says what it was made of (side, batches, layout), so
that whoever needs it finds it or makes it anew, and two tasks that make it at once make the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from penstock.kernels.window_join.ranges import BatchRange
from penstock.kernels.window_join.run_files import read_run, write_run
from penstock.kernels.window_join.runs import SortedRun

Look: TypeAlias = tuple[int, int, int]
"""Of a file: which one it is, how large, and when it was last written to."""


def _look(path: Path) -> Look | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class RunCache:
    """Runs by side and range of batches; with a folder, mapped from files there.

    A file that is damaged counts as lost: it is removed, and ``damaged`` names it. Files are
    never written to, so one that looks otherwise than when it was opened is read again.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._open: dict[tuple[str, BatchRange], SortedRun] = {}
        self._looks: dict[tuple[str, BatchRange], Look] = {}
        self._asked: set[tuple[str, BatchRange]] = set()
        self.made = 0
        self.damaged: list[Path] = []
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, side: str, batches: BatchRange) -> SortedRun | None:
        """The run, if it is here."""
        key, path = (side, batches), self._path(side, batches)
        self._asked.add(key)
        if path is None:
            return self._open.get(key)
        look = _look(path)
        if look is None or self._looks.get(key) != look:
            self._forget(key)
        if look is not None and key not in self._open:
            run = read_run(path)
            if run is None:
                path.unlink(missing_ok=True)
                self.damaged.append(path)
                return None
            self._open[key], self._looks[key] = run, look
        return self._open.get(key)

    def put(self, side: str, batches: BatchRange, run: SortedRun) -> SortedRun:
        """Keeps a run that was made; what is kept, which is mapped from its file if it has one."""
        self.made += 1
        path = self._path(side, batches)
        if path is None:
            self._open[side, batches] = run
            return run
        write_run(run, path)
        return self.get(side, batches) or run

    def drop(self, side: str, batches: BatchRange) -> None:
        """Lets go of a run that a larger one has replaced."""
        self._forget((side, batches))
        if (path := self._path(side, batches)) is not None:
            path.unlink(missing_ok=True)

    def retire(self, side: str, first: int) -> None:
        """Lets go of the runs of a side that end before the batch with which its window begins."""
        known = {batches for name, batches in self._open if name == side}
        for batches in known | self._on_disk(side):
            if batches.stop <= first:
                self.drop(side, batches)

    def close_unused(self) -> None:
        """Closes the runs that nobody has asked for since this was last called."""
        if self._folder is not None:
            for key in [key for key in self._open if key not in self._asked]:
                self._forget(key)
        self._asked.clear()

    def _forget(self, key: tuple[str, BatchRange]) -> None:
        self._open.pop(key, None)
        self._looks.pop(key, None)

    def size_bytes(self) -> int:
        """What the runs that are open here take."""
        return sum(run.size_bytes for run in self._open.values())

    def _path(self, side: str, batches: BatchRange) -> Path | None:
        if self._folder is None:
            return None
        return self._folder / f"{side}-{batches.start}-{batches.stop}.run"

    def _on_disk(self, side: str) -> set[BatchRange]:
        if self._folder is None:
            return set()
        names = (path.stem.rsplit("-", 2) for path in self._folder.glob(f"{side}-*.run"))
        return {BatchRange(int(start), int(stop)) for name, start, stop in names if name == side}
