"""How far the time of a stream has come, as its tasks have found out.

Only the rows of a Kafka topic tell the time, and tasks read them. Whoever plans batches has to know
it for a stream that falls silent: from there its time moves on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.spark.channels.durable import read_text, write_text


@dataclass(frozen=True)
class KnownTime:
    """A watermark in a file. Of several tasks that write at once one may be lost: the time then
    is known to be earlier than it is, which is never wrong.
    """

    path: Path

    def read(self) -> int | None:
        """The latest watermark noted; None if there was none."""
        text = read_text(self.path)
        return int(text) if text else None

    def note(self, watermark_us: int) -> None:
        """Takes note of a watermark, if none was later."""
        known_us = self.read()
        if known_us is None or watermark_us > known_us:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, str(watermark_us), synced=False)
