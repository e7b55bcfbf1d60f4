"""Dead letters: rows that could not be used, kept for a person to look at, each once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.feeds.pieces import Reject
from penstock.spark.channels.durable import write_text


@dataclass(frozen=True)
class DeadLetters:
    """The dead letters of one stream: JSON lines in files, one file for each part of the input.

    A part read again replaces its file, so nothing is counted twice. A file's name ends in the
    number of rows it holds.
    """

    folder: Path

    def put_rejects(self, part: str, rejects: Iterable[Reject]) -> int:
        """Keeps rows that could not be read; how many."""
        return self._put(part, "malformed", [one.to_json() for one in rejects])

    def put_late(self, part: str, rows: pa.Table) -> int:
        """Keeps rows that came too late; how many."""
        lines = [
            json.dumps({"reason": "late", "row": row}, default=str) for row in rows.to_pylist()
        ]
        return self._put(part, "late", lines)

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
        """How many rows were set aside, by kind.

        Several readers of one generator each set its late rows aside; they are counted once.
        """
        by_reader: dict[tuple[str, str], int] = {}
        for path in self.folder.glob("*.jsonl") if self.folder.is_dir() else ():
            part, kind, _ = path.name.rsplit(".", 2)
            what, _, number = kind.partition("-")
            key = (what, part.rpartition("-")[0])
            by_reader[key] = by_reader.get(key, 0) + int(number)
        totals = {"malformed": 0, "late": 0}
        for (what, _), count in by_reader.items():
            totals[what] = max(totals[what], count)
        return totals
