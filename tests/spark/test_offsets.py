"""Spark's offset log: what it says about a batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.channels.manifest import END_OF_TIME_US
from penstock.errors import RunError
from penstock.spark.offsets import BatchOffsets, batch_offsets
from penstock.spark.sources.beats import SHIFT_US

pytestmark = pytest.mark.core

# As Spark 4.3 writes it, shortened in its configuration only.
METADATA = {
    "batchWatermarkMs": 1709200800000 + SHIFT_US // 1_000,
    "batchTimestampMs": 1763237069164,
    "conf": {"spark.sql.shuffle.partitions": "2"},
    "sourceMetadataInfo": {},
}


def write(folder: Path, *lines: object, batch_id: int = 7) -> Path:
    path = folder / "offsets" / str(batch_id)
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return folder


def test_an_entry_is_read(tmp_path: Path) -> None:
    told = {"next": 3, "watermark_us": 1709200800000000}
    found = batch_offsets(write(tmp_path, "v1", METADATA, told, {"at": 5}), 7)
    assert found == BatchOffsets(1709200800000000, (told, {"at": 5}))


def test_before_the_first_heartbeat_there_is_no_watermark(tmp_path: Path) -> None:
    found = batch_offsets(write(tmp_path, "v1", METADATA | {"batchWatermarkMs": 0}), 7)
    assert found.watermark_us is None
    assert not found.time_is_over


def test_a_source_that_has_not_told_anything_is_not_forgotten(tmp_path: Path) -> None:
    ended = {"next": 3, "ended": True, "watermark_us": END_OF_TIME_US}
    found = batch_offsets(write(tmp_path, "v1", METADATA, ended, "-"), 7)
    assert found.sources == (ended, {})
    assert not found.all_ended
    assert found.reached_us is None


@pytest.mark.parametrize(
    ("sources", "all_ended", "reached_us"),
    [
        ((), False, None),
        (({"at": 1},), False, None),
        (({"at": 1, "watermark_us": 5},), False, 5),
        (({"at": 1, "watermark_us": 5}, {"at": 1, "watermark_us": 3}), False, 3),
        (({"at": 1, "watermark_us": 5}, {"at": 1}), False, None),
        (({"at": 1, "watermark_us": 9, "ended": True}, {"at": 1, "watermark_us": 3}), False, 3),
        (({"at": 1, "watermark_us": 9, "ended": True},) * 2, True, 9),
        (({"at": 1, "watermark_us": 0},), False, 0),
    ],
)
def test_what_is_known_once_a_batch_is_read(
    sources: tuple[dict[str, object], ...], all_ended: bool, reached_us: int | None
) -> None:
    found = BatchOffsets(0, sources)
    assert found.all_ended is all_ended
    assert found.reached_us == reached_us


def test_time_is_over_at_its_end_in_whole_milliseconds() -> None:
    assert BatchOffsets(END_OF_TIME_US, ()).time_is_over
    assert BatchOffsets(END_OF_TIME_US - 1_000, ()).time_is_over
    assert not BatchOffsets(END_OF_TIME_US - 1_001, ()).time_is_over
    assert not BatchOffsets(0, ()).time_is_over


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("v1",),
        ("v1", "{"),
        ("v1", "[]"),
        ("v1", "3"),
        ("v1", {}),
        ("v1", {"batchWatermarkMs": "soon"}),
        ("v1", {"batchWatermarkMs": None}),
        ("v1", METADATA, "{"),
    ],
)
def test_a_damaged_entry_is_refused_by_name(tmp_path: Path, lines: tuple[object, ...]) -> None:
    write(tmp_path, *lines)
    with pytest.raises(RunError) as caught:
        batch_offsets(tmp_path, 7)
    message = str(caught.value)
    assert message.startswith(f"Spark's offset log {tmp_path}/offsets/7 cannot be read (")
    assert message.endswith("). Restore the file from a backup, or start afresh with --fresh.")


def test_a_missing_entry_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"offsets/7 cannot be read \(.*No such file"):
        batch_offsets(tmp_path, 7)
