"""Checkpoints that change hands: each owner of a fragment works in a folder of its own.

Spark has no lease on a checkpoint: a former owner that wakes up after it was replaced would go on
writing into it. So a new owner starts from a copy, and what the former one still writes lands
where nobody looks. The copy is made of hard links; Spark replaces files, it never changes one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from pathlib import Path

from penstock.channels.durable import RESTORE, write_text
from penstock.errors import RunError
from penstock.spark.checkpoint_files import SEAL, check, entries, last_entry

_NAME = re.compile(r"checkpoint-(\d+)")
# Spark writes offsets, then state, then commits. What it wrote last is copied first: then all that
# a copied commit rests on is there when its turn comes, whoever is still writing.
_ORDER = ("commits", "state", "offsets")
# Holds nothing but the query's number in Spark; a new owner is a new query.
_METADATA = "metadata"
_WHOLE = "penstock-whole"


def path_of(folder: Path, epoch: int) -> Path:
    """Where the owner with this epoch keeps its checkpoint."""
    return folder / f"checkpoint-{epoch}"


def take_over(folder: Path, epoch: int) -> Path:
    """The checkpoint of the owner with this epoch, beginning where the former one has come to.

    It is filled in place, because Spark may be waiting for it already; it counts only once it is
    whole.
    """
    mine = path_of(folder, epoch)
    if _is_whole(mine):
        check(mine)
        return mine
    former = newest(folder)
    if former is not None and _epoch(former) > epoch:
        raise replaced(folder.name, _epoch(former), epoch)
    _check_unfinished(folder, former)
    mine.mkdir(parents=True, exist_ok=True)
    if former is not None:
        check(former)
        _fill(mine, former)
    (mine / _WHOLE).touch()
    return mine


def replaced(fragment: str, current: int, epoch: int) -> RunError:
    """The error for an owner that another one has come after."""
    return RunError(
        f"fragment {fragment} belongs to a newer owner (epoch {current}, this one has {epoch})",
        hint="This owner was replaced and must stop.",
    )


def forget_former(folder: Path, epoch: int) -> None:
    """Deletes the checkpoints before that of the last owner before this one.

    Higher ones stay: somebody may be getting ready for the next move there.
    """
    lower = [checkpoint for checkpoint in _checkpoints(folder) if _epoch(checkpoint) < epoch]
    former = max(filter(_is_whole, lower), key=_epoch, default=None)
    for other in lower:
        if other != former:
            shutil.rmtree(other, ignore_errors=True)


def begin(folder: Path, epoch: int) -> bool:
    """Makes the next owner's checkpoint as far as the present one has come; whether there is one.

    Spark remembers whether its checkpoint was empty when it was told to start. What is still
    missing is added by :func:`take_over`.
    """
    former = newest(folder)
    if former is None:
        return False
    mine = path_of(folder, epoch)
    mine.mkdir(parents=True, exist_ok=True)
    _fill(mine, former)
    return any(entries(mine / "offsets"))


def newest(folder: Path) -> Path | None:
    """The checkpoint of the latest owner; None where there was none."""
    return max(filter(_is_whole, _checkpoints(folder)), key=_epoch, default=None)


def _is_whole(checkpoint: Path) -> bool:
    return (checkpoint / _WHOLE).exists()


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]


def _epoch(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _check_unfinished(folder: Path, former: Path | None) -> None:
    """Raises if a checkpoint that nobody finished filling was worked with.

    Its mark has gone, and going on from the one before it would do batches anew.
    """
    for checkpoint in _checkpoints(folder):
        if _is_whole(checkpoint) or (former is not None and _epoch(checkpoint) < _epoch(former)):
            continue
        last = last_entry(checkpoint / "offsets")
        if last is not None and not _is_of(last, former):
            raise RunError(f"the checkpoint file {checkpoint / _WHOLE} is missing", hint=RESTORE)


def _is_of(entry: Path, former: Path | None) -> bool:
    """Whether the former owner has planned this batch, or is past it."""
    newest_there = None if former is None else last_entry(former / "offsets")
    if former is None or newest_there is None or int(newest_there.name) < int(entry.name):
        return False
    try:
        return (former / "offsets" / entry.name).read_bytes() == entry.read_bytes()
    except FileNotFoundError:
        # What goes away is older than anything needed.
        return True


def _fill(target: Path, source: Path) -> None:
    for name in [*_ORDER, *sorted(path.name for path in source.iterdir())]:
        if name not in (_METADATA, _WHOLE, SEAL):
            _link(source / name, target / name)
    if (source / SEAL).exists():
        # What was linked when this was begun is an older one by now.
        write_text(target / SEAL, (source / SEAL).read_text(encoding="utf-8"), synced=False)
    if not (target / _METADATA).exists():
        write_text(target / _METADATA, json.dumps({"id": str(uuid.uuid4())}))


def _link(source: Path, target: Path) -> None:
    # What goes away meanwhile is older than anything needed.
    if source.is_dir():
        target.mkdir(exist_ok=True)
        for path in source.iterdir():
            if not path.name.startswith("."):
                _link(path, target / path.name)
    elif source.exists():
        try:
            os.link(source, target)
        except (FileExistsError, FileNotFoundError):
            return
        except OSError:
            shutil.copyfile(source, target)
