"""Taking a fragment over, ended by a kill at every single change of the disk on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.channels.channel import Channel
from penstock.channels.writer import Writer
from penstock.errors import RunError
from penstock.spark.checkpoint_files import seal
from penstock.spark.checkpoints import begin, newest, path_of
from penstock.spark.fragment_folder import FragmentFolder

from channels.disk import Died, careless, dying_at

_CHANGES_AT_MOST = 200


def put(checkpoint: Path, batch: int) -> None:
    """What Spark leaves behind after a batch, and we with it."""
    told = {"offsets": '{"batchWatermarkMs": 5}', "commits": '{"nextBatchWatermarkMs": 5}'}
    for log, record in told.items():
        (checkpoint / log).mkdir(parents=True, exist_ok=True)
        (checkpoint / log / str(batch)).write_text(f"v1\n{record}")
    state = checkpoint / "state" / "0" / "0"
    state.mkdir(parents=True, exist_ok=True)
    (state / f"{batch + 1}.delta").write_text("rows")
    seal(checkpoint, batch)


def files(checkpoint: Path) -> dict[str, bytes]:
    found = [path for path in checkpoint.rglob("[!.]*") if path.is_file()]
    found = [path for path in found if path.name != "metadata"]
    return {str(path.relative_to(checkpoint)): path.read_bytes() for path in found}


class Handed:
    """A fragment with a former owner, the one it has now, and its channel."""

    def __init__(self, folder: Path) -> None:
        self.folder = FragmentFolder(folder / "fragment")
        self.channel = Channel.open(folder / "channel")
        with careless():
            for epoch in (1, 2):
                self.take_over(epoch)
                put(path_of(self.folder.path, epoch), epoch)
                Writer(self.channel, epoch).commit(epoch, [])

    def arm(self, epoch: int) -> None:
        begin(self.folder.path, epoch)

    def take_over(self, epoch: int) -> None:
        self.folder.claim(epoch)
        Writer(self.channel, epoch)
        self.folder.take_over(epoch)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("is_armed", [False, True], ids=["at once", "armed"])
def test_the_next_one_begins_where_the_last_has_come_to(
    tmp_path: Path, is_armed: bool, after: bool
) -> None:
    deaths = 0
    for step in range(1, _CHANGES_AT_MOST):
        handed = Handed(tmp_path / str(step))
        whole = files(path_of(handed.folder.path, 2))
        try:
            with dying_at(step, after=after):
                if is_armed:
                    handed.arm(3)
                handed.take_over(3)
        except Died:
            deaths += 1
            handed.take_over(4)
            assert files(path_of(handed.folder.path, 4)) == whole
            assert newest(handed.folder.path) == path_of(handed.folder.path, 4)
            Writer(handed.channel, 4).commit(9, [])
            assert [one.batch_id for one in handed.channel.newer(0)] == [1, 2, 9]
            with pytest.raises(RunError, match="belongs to a newer owner"):
                handed.folder.check_owner(3)
        else:
            assert deaths > 8, "it must have claimed, linked, marked and cleaned up"
            return
    raise AssertionError("taking over takes this many changes?")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_owner_goes_on_when_whoever_gets_ready_dies(tmp_path: Path, after: bool) -> None:
    for step in range(1, _CHANGES_AT_MOST):
        handed = Handed(tmp_path / str(step))
        mine = path_of(handed.folder.path, 2)
        try:
            with dying_at(step, after=after):
                handed.arm(3)
        except Died:
            put(mine, 3)
            handed.folder.check_owner(2)
            # Another node gets ready as the same next owner, in what the dead one left.
            handed.arm(3)
            put(mine, 4)
            handed.take_over(3)
            assert files(path_of(handed.folder.path, 3)) == files(mine)
        else:
            assert step > 5
            return
    raise AssertionError("getting ready takes this many changes?")
