"""Files of a checkpoint: whatever has become of them, they are not believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.errors import RunError
from penstock.spark.checkpoint_files import SEAL, check, seal
from penstock.spark.sources.beats import SHIFT_US

pytestmark = pytest.mark.core

MINUTE_MS = 60_000


def written(checkpoint: Path, batch: int, watermark_ms: int = MINUTE_MS) -> None:
    """What Spark leaves behind after a batch of one source."""
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": 17, "conf": {"partitions": "2"}}
    source = {"next": batch, "watermark_us": MINUTE_MS * 1_000}
    told_ms = watermark_ms + SHIFT_US // 1_000
    logs = {"offsets": (metadata, source), "commits": ({"nextBatchWatermarkMs": told_ms},)}
    for log, records in logs.items():
        (checkpoint / log).mkdir(parents=True, exist_ok=True)
        text = "\n".join(["v1", *map(json.dumps, records)])
        (checkpoint / log / str(batch)).write_text(text)
    seal(checkpoint, batch)


def test_what_is_whole_is_believed(tmp_path: Path) -> None:
    check(tmp_path)
    for batch in range(3):
        written(tmp_path, batch)
        check(tmp_path)


@pytest.mark.parametrize("name", ["offsets/1", SEAL])
def test_any_changed_bit_is_noticed(tmp_path: Path, name: str) -> None:
    written(tmp_path, 0)
    written(tmp_path, 1)
    path = tmp_path / name
    whole = path.read_bytes()
    for at in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        with pytest.raises(RunError, match=rf"file {path} is damaged"):
            check(tmp_path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RunError, match=rf"file {path} is damaged"):
            check(tmp_path)


def test_a_watermark_beyond_what_the_inputs_told_is_noticed(tmp_path: Path) -> None:
    written(tmp_path, 0, watermark_ms=MINUTE_MS)
    check(tmp_path)
    written(tmp_path, 0, watermark_ms=MINUTE_MS + 1)
    with pytest.raises(RunError, match=r"commits/0 is damaged"):
        check(tmp_path)


def test_a_sealed_plan_that_is_gone_is_missed(tmp_path: Path) -> None:
    written(tmp_path, 0)
    written(tmp_path, 1)
    for log in ("offsets", "commits"):
        (tmp_path / log / "1").unlink()
    with pytest.raises(RunError, match=r"offsets/1 is missing"):
        check(tmp_path)


def test_a_batch_planned_after_the_last_seal_is_believed(tmp_path: Path) -> None:
    """A process may end between the two."""
    written(tmp_path, 0)
    sealed = (tmp_path / SEAL).read_text()
    written(tmp_path, 1)
    (tmp_path / SEAL).write_text(sealed)
    check(tmp_path)
