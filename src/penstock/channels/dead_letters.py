"""Dead letters: rows that could not be used, kept for a person to look at, each once.

``malformed`` rows could not be read, ``skipped`` files not at all; ``late`` rows came too late,
``ahead`` ones are too far in the future, and ``untimed`` ones have no event time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.channels.channel import Channel
from penstock.channels.durable import read_text, write_text
from penstock.feeds.arrow import moment_text, rows_of
from penstock.feeds.pieces import Reject


@dataclass(frozen=True)
class DeadLetters:
    """The dead letters of one stream: JSON lines in files, one file for each part of the input.

    A part read again replaces its file, so nothing is counted twice. A file's name ends in the
    number of rows it holds.
    """

    folder: Path

    def put_rejects(self, part: str, rejects: Iterable[Reject]) -> int:
        """Keeps rows, and tells of files, that could not be read; how many."""
        given = list(rejects)
        skipped = [reject.to_json() for reject in given if reject.is_whole_file]
        malformed = [reject.to_json() for reject in given if not reject.is_whole_file]
        return self._put(part, "malformed", malformed) + self._put(part, "skipped", skipped)

    def put_late(self, part: str, rows: pa.Table, after_us: Sequence[int] | None = None) -> int:
        """Keeps rows that came too late, with the time the stream had come to; how many."""
        return self._put_rows(part, "late", "late", rows, after_us)

    def put_ahead(self, part: str, rows: pa.Table, clock_us: int) -> int:
        """Keeps rows that were too far ahead, with what the clock said; how many."""
        return self._put_rows(part, "ahead", "ahead", rows, [clock_us] * rows.num_rows)

    def put_untimed(self, part: str, rows: pa.Table) -> int:
        """Keeps rows without an event time; how many."""
        return self._put_rows(part, "untimed", "no event time", rows)

    def _put_rows(
        self,
        part: str,
        kind: str,
        reason: str,
        rows: pa.Table,
        at_us: Sequence[int] | None = None,
    ) -> int:
        times = [{}] * rows.num_rows if at_us is None else [{"at": moment_text(us)} for us in at_us]
        lines = [
            json.dumps({"reason": reason, **at, "row": row}, default=str)
            for at, row in zip(times, rows_of(rows), strict=True)
        ]
        return self._put(part, kind, lines)

    def _put(self, part: str, kind: str, lines: list[str]) -> int:
        if lines:
            self.folder.mkdir(parents=True, exist_ok=True)
            name = f"{part}.{kind}-{len(lines)}.jsonl"
            write_text(self.folder / name, "\n".join(lines) + "\n")
        return len(lines)

    def forget(self, part: str) -> None:
        """Drops what was kept of a part that is about to be read again, perhaps differently."""
        for path in self.folder.glob(f"{part}.*.jsonl"):
            path.unlink(missing_ok=True)

    def counts(self) -> dict[str, int]:
        """How many rows were set aside, by kind; of other kinds than these two if there are any.

        Several readers of one generator each set its late rows aside; they are counted once.
        """
        by_reader: dict[tuple[str, str], int] = {}
        for file in self._files():
            key = (file.kind, file.reader)
            by_reader[key] = by_reader.get(key, 0) + file.rows
        totals = {"malformed": 0, "late": 0}
        for (what, _), count in by_reader.items():
            totals[what] = max(totals.get(what, 0), count)
        return totals

    def _files(self) -> list[_LetterFile]:
        """Files by the order of their parts."""
        paths = self.folder.glob("*.jsonl") if self.folder.is_dir() else ()
        return sorted(map(_described, paths), key=lambda file: file.path.name)

    def newest(self, most: int) -> list[dict[str, object]]:
        """The last letters, oldest first, each with its ``kind``; those of one reader once."""
        found: list[dict[str, object]] = []
        for file in reversed(self._once()):
            lines = (read_text(file.path) or "").splitlines()
            found += [{"kind": file.kind, **json.loads(line)} for line in reversed(lines)]
            if len(found) >= most:
                break
        return found[:most][::-1]

    def reasons(self) -> dict[str, str]:
        """Why the first row of the newest file of each kind was set aside."""
        newest = {file.kind: file.path for file in self._files()}
        first = {kind: (read_text(path) or "").split("\n", 1)[0] for kind, path in newest.items()}
        return {kind: str(json.loads(line)["reason"]) for kind, line in first.items() if line}

    def _once(self) -> list[_LetterFile]:
        """The files of one reader of each kind: the others hold the same rows."""
        files = self._files()
        chosen = {file.kind: file.reader for file in files}
        return [file for file in files if chosen[file.kind] == file.reader]


def has_ended_unread(channel: Channel) -> bool:
    """Whether the stream that a channel carries has ended without a row that could be used."""
    last = channel.last()
    return last is not None and last.ended and last.writer_state.get("admitted") == 0


@dataclass(frozen=True)
class _LetterFile:
    path: Path
    reader: str
    kind: str
    rows: int


def _described(path: Path) -> _LetterFile:
    part, kind, _ = path.name.rsplit(".", 2)
    what, _, number = kind.partition("-")
    return _LetterFile(path, part.rpartition("-")[0], what, int(number))
