"""What Spark's offset log says about a batch before it runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from penstock.channels.manifest import END_OF_TIME_US
from penstock.errors import RunError
from penstock.spark.sources.beats import event_time_us


@dataclass(frozen=True)
class BatchOffsets:
    """The watermark a batch runs with, if there is one, and how far each source is read in it."""

    watermark_us: int | None
    sources: tuple[dict[str, object], ...]

    @property
    def all_ended(self) -> bool:
        """Whether every source is read to its end."""
        return bool(self.sources) and all(source.get("ended") for source in self.sources)

    @property
    def time_is_over(self) -> bool:
        """Whether the watermark is past every window."""
        return self.watermark_us is not None and self.watermark_us >= END_OF_TIME_US - 1_000

    @property
    def reached_us(self) -> int | None:
        """The watermark that holds once this batch is read; None where a source tells none."""
        known = [source.get("watermark_us") for source in self.sources]
        numbers = [watermark for watermark in known if isinstance(watermark, int)]
        return min(numbers) if numbers and len(numbers) == len(known) else None


def batch_offsets(checkpoint: Path, batch_id: int) -> BatchOffsets:
    """Reads the entry that Spark wrote before it started the batch."""
    path = checkpoint / "offsets" / str(batch_id)
    try:
        _, metadata, *sources = path.read_text(encoding="utf-8").splitlines()
        watermark_ms = int(json.loads(metadata)["batchWatermarkMs"])
        # Spark writes a dash for a source that has not told where it is.
        offsets = tuple({} if source == "-" else json.loads(source) for source in sources)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"Spark's offset log {path} cannot be read ({error})",
            hint="Restore the file from a backup, or start afresh with --fresh.",
        ) from None
    return BatchOffsets(event_time_us(watermark_ms), offsets)
