"""Files that a disk has spoilt: the right rows, or a refusal that names the file.

One run is stopped halfway. Every case spoils one file of a copy of it and goes on from there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from one_fragment import OPTIONS, Place, entries_of
from pyspark.sql import SparkSession

from penstock.errors import PenstockError, RunError
from penstock.spark.checkpoints import newest
from penstock.spark.node import Node
from penstock.spark.state import StateFolder

LIMIT_S = 120.0


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path) -> None:
    """One bit of a digit or a letter near the middle is another."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def removed(path: Path) -> None:
    path.unlink()


DAMAGES = (cut, emptied, flipped, removed)
Find = Callable[[Place], Path]


def state_files(place: Place, kind: str) -> list[Path]:
    """Spark's state of one partition, by version."""
    checkpoint = newest(place.state.fragment("sums").path)
    assert checkpoint is not None
    found = list((checkpoint / "state" / "0" / "0").glob(f"*.{kind}"))
    return sorted(found, key=lambda path: int(path.stem))


def unread(place: Place) -> int:
    """The number of a batch of the input that is still to be read."""
    return place.state.channel("readings").sequences()[-2]


def row_file(place: Place) -> Path:
    channel = place.state.channel("readings")
    manifest = channel.manifest(unread(place))
    assert manifest is not None
    return channel.data / manifest.files[0].name


def in_checkpoint(place: Place, name: str) -> Path:
    checkpoint = newest(place.state.fragment("sums").path)
    assert checkpoint is not None
    return checkpoint / name


FILES: dict[str, Find] = {
    "manifest to read": lambda place: place.state.channel("readings").entry(unread(place)),
    "rows to read": row_file,
    "manifest written last": lambda place: place.output.entry(place.output.sequences()[-1]),
    "floor": lambda place: place.output.folder / "floor",
    "head": lambda place: place.output.folder / "head",
    "reader": lambda place: place.output.folder / "readers" / "test",
    "epoch of a channel": lambda place: place.output.folder / "epoch-1",
    "epoch of a fragment": lambda place: place.state.fragment("sums").path / "epoch-1",
    "life of a fragment": lambda place: place.state.fragment("sums").path / "life",
    "rows out": lambda place: place.state.fragment("sums").path / "rows_out",
    "plan of a batch": lambda place: entries_of(place, "offsets")[-1],
    "mark of a batch done": lambda place: entries_of(place, "commits")[-1],
    "state delta": lambda place: state_files(place, "delta")[-1],
    "query's number": lambda place: in_checkpoint(place, "metadata"),
    "mark of a whole checkpoint": lambda place: in_checkpoint(place, "penstock-whole"),
    "seal": lambda place: in_checkpoint(place, "penstock-seal"),
}
# Everything else is refused.
RIGHT = {
    ("floor", removed),
    ("head", removed),
    ("reader", removed),
    # Their names say it all, and a next owner has a higher one.
    *((f"epoch of a {what}", damage) for what in ("channel", "fragment") for damage in DAMAGES),
    ("rows out", removed),
    # Done again, and recognised.
    ("mark of a batch done", removed),
    *(("query's number", damage) for damage in DAMAGES),
    *(("mark of a whole checkpoint", damage) for damage in (cut, emptied)),
    ("seal", removed),
}
CASES = [
    (name, damage)
    for name in FILES
    for damage in DAMAGES
    # Marks are empty, and a wrong count of rows is only shown.
    if damage is not flipped or not (name.startswith(("mark of a whole", "rows out", "epoch")))
]


def gone_on(place: Place, session: SparkSession) -> PenstockError | None:
    """A new owner takes over; what stops it, or None once everything is out."""
    # What is left fits into a batch or two: there are many cases.
    options = replace(OPTIONS, max_rows_per_batch=5_000)
    node = Node(session, StateFolder(place.state.path), options)
    until_s = time.monotonic() + LIMIT_S
    try:
        place.start(node, 2)
        while not place.is_finished():
            failure = node.failure("sums")
            if failure is not None:
                return failure
            assert time.monotonic() < until_s, "neither done nor refused: it hangs"
            time.sleep(0.01)
    except PenstockError as error:
        return error
    finally:
        node.stop()
    return None


@pytest.mark.parametrize(
    ("name", "damage"), CASES, ids=[f"{name}-{damage.__name__}" for name, damage in CASES]
)
def test_spoilt(
    name: str,
    damage: Callable[[Path], None],
    session: SparkSession,
    place: Place,
    undisturbed: Counter[tuple[object, ...]],
) -> None:
    path = FILES[name](place)
    before = path.read_bytes()
    damage(path)
    assert not path.exists() or path.read_bytes() != before or not before
    refusal = gone_on(place, session)
    if (name, damage) in RIGHT:
        assert refusal is None
        assert place.rows() == undisturbed
        return
    assert isinstance(refusal, RunError)
    assert path.name in str(refusal)
    assert str(path.parent.name) in str(refusal)
    assert "Restore" in str(refusal) or "delete it" in str(refusal)
    assert "Traceback" not in str(refusal) and "\n" not in str(refusal)
