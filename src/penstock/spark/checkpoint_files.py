"""What Spark's checkpoint says, checked before it is believed.

Spark takes the small files of a checkpoint at their word: with a digit changed or a file gone it
plans other batches under numbers that are taken, and rows are lost. So every batch's plan is sealed
when it runs, and whoever goes on from a checkpoint looks at it first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from penstock.channels.durable import RESTORE, checksum, read_text, write_text
from penstock.errors import RunError
from penstock.spark.offsets import batch_offsets
from penstock.spark.sources.beats import event_time_us

SEAL = "penstock-seal"
_VERSIONS = (b"v1", b"v2")


def seal(checkpoint: Path, batch_id: int) -> None:
    """Remembers what the plan of a batch looks like, which Spark has just written."""
    check = checksum((checkpoint / "offsets" / str(batch_id)).read_bytes())
    write_text(checkpoint / SEAL, _sealed(batch_id, check), synced=False)


def check(checkpoint: Path) -> None:
    """Raises if one of the files by which Spark finds its way is damaged or missing."""
    # In this order: somebody may be adding to it still, and adds them the other way round.
    sealed = _read_seal(checkpoint)
    done = last_entry(checkpoint / "commits")
    planned = last_entry(checkpoint / "offsets")
    for last, key in ((planned, "batchWatermarkMs"), (done, "nextBatchWatermarkMs")):
        if last is not None:
            _check_entry(last, key)
    for needed in (None if sealed is None else str(sealed[0]), None if done is None else done.name):
        # Spark would plan the batch anew, with other rows under the same number.
        if needed is not None and (planned is None or int(planned.name) < int(needed)):
            raise _missing(checkpoint / "offsets" / needed)
    if planned is not None and sealed is not None and not _is_as_sealed(planned, *sealed):
        raise _damaged(planned)
    if planned is not None and done is not None and planned.name == done.name:
        _check_watermark(checkpoint, done)


def last_entry(log: Path) -> Path | None:
    """The newest entry of one of Spark's logs."""
    return max(entries(log), key=lambda path: int(path.name), default=None)


def entries(log: Path) -> Iterator[Path]:
    """The entries of one of Spark's logs, in no order."""
    return (path for path in log.iterdir() if path.name.isdigit()) if log.is_dir() else iter(())


def _sealed(batch_id: int, check: int) -> str:
    """
    >>> _sealed(3, 77)
    '3 0000004d 4fffd16d'
    """
    text = f"{batch_id} {check:08x}"
    return f"{text} {checksum(text.encode()):08x}"


def _read_seal(checkpoint: Path) -> tuple[int, int] | None:
    path = checkpoint / SEAL
    text = read_text(path)
    if text is None:
        return None
    try:
        batch_id, check = int(text.split(" ")[0]), int(text.split(" ")[1], 16)
    except (ValueError, IndexError):
        raise _damaged(path) from None
    if text != _sealed(batch_id, check):
        raise _damaged(path)
    return batch_id, check


def _is_as_sealed(planned: Path, batch_id: int, check: int) -> bool:
    return int(planned.name) != batch_id or checksum(planned.read_bytes()) == check


def _check_entry(path: Path, key: str) -> None:
    """Raises if an entry is not what Spark writes: a version, a record with ``key``, and others."""
    version, *lines = path.read_bytes().split(b"\n")
    try:
        first, *_ = [{} if line == b"-" else dict(json.loads(line)) for line in lines]
        is_whole = version in _VERSIONS and isinstance(first.get(key), int)
    except (ValueError, TypeError):
        is_whole = False
    if not is_whole:
        raise _damaged(path)


def _check_watermark(checkpoint: Path, done: Path) -> None:
    """Raises if the batch done last left time further than its inputs can have moved it."""
    offsets = batch_offsets(checkpoint, int(done.name))
    reached_us = offsets.reached_us
    told_ms = json.loads(done.read_bytes().split(b"\n")[1])["nextBatchWatermarkMs"]
    told_us, known_us = event_time_us(told_ms), offsets.watermark_us
    if reached_us is None or told_us is None:
        return
    if told_us > (reached_us if known_us is None else max(reached_us, known_us)):
        raise _damaged(done)


def _damaged(path: Path) -> RunError:
    return RunError(f"the checkpoint file {path} is damaged", hint=RESTORE)


def _missing(path: Path) -> RunError:
    return RunError(f"the checkpoint file {path} is missing", hint=RESTORE)
