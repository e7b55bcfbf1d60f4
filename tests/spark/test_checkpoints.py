"""Checkpoints that change hands: copied whole, damaged ones named, former owners shut out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.errors import RunError
from penstock.spark.checkpoints import begin, forget_former, newest, path_of, take_over
from penstock.spark.fragment_folder import FragmentFolder

pytestmark = pytest.mark.core


def put(checkpoint: Path, batch: int) -> None:
    """What Spark leaves behind after a batch."""
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir(parents=True, exist_ok=True)
        told = '{"batchWatermarkMs": 5}' if log == "offsets" else '{"nextBatchWatermarkMs": 5}'
        (checkpoint / log / str(batch)).write_text(f"v1\n{told}")
    state = checkpoint / "state" / "0" / "1"
    state.mkdir(parents=True, exist_ok=True)
    (state / f"{batch + 1}.delta").write_bytes(b"rows")
    (checkpoint / "metadata").write_text('{"id":"1"}')


def files(checkpoint: Path) -> dict[str, bytes]:
    ours = {"metadata", "penstock-whole"}
    found = [path for path in checkpoint.rglob("*") if path.is_file() and path.name not in ours]
    return {str(path.relative_to(checkpoint)): path.read_bytes() for path in found}


def test_the_first_owner_begins_with_nothing(tmp_path: Path) -> None:
    assert newest(tmp_path) is None
    assert files(take_over(tmp_path, 3)) == {}


def test_a_new_owner_begins_where_the_former_is(tmp_path: Path) -> None:
    first = take_over(tmp_path, 1)
    put(first, 0)
    second = take_over(tmp_path, 5)
    assert files(second) == files(first)
    assert newest(tmp_path) == second


def test_an_owner_keeps_its_own(tmp_path: Path) -> None:
    mine = take_over(tmp_path, 1)
    put(mine, 0)
    assert take_over(tmp_path, 1) == mine
    assert "commits/0" in files(mine)


def test_what_the_former_owner_still_writes_is_not_seen(tmp_path: Path) -> None:
    former = take_over(tmp_path, 1)
    put(former, 0)
    mine = take_over(tmp_path, 2)
    put(former, 1)
    # Spark replaces a file by another, it does not write into it.
    replacement = former / "offsets" / ".0"
    replacement.write_text("v1\n{}")
    replacement.replace(former / "offsets" / "0")
    assert "commits/1" not in files(mine)
    assert files(mine)["offsets/0"] == b'v1\n{"batchWatermarkMs": 5}'


def test_only_the_former_one_is_kept_beside_it(tmp_path: Path) -> None:
    for epoch in range(1, 5):
        put(take_over(tmp_path, epoch), epoch)
        forget_former(tmp_path, epoch)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-3", "checkpoint-4"]


def test_what_is_got_ready_for_the_next_move_is_left_alone(tmp_path: Path) -> None:
    put(take_over(tmp_path, 1), 0)
    assert begin(tmp_path, 4)
    take_over(tmp_path, 3)
    forget_former(tmp_path, 3)
    assert "offsets/0" in files(path_of(tmp_path, 4))
    assert newest(tmp_path) == path_of(tmp_path, 3)
    put(path_of(tmp_path, 3), 1)
    assert "commits/1" in files(take_over(tmp_path, 4))


def test_files_half_written_are_left_behind(tmp_path: Path) -> None:
    former = take_over(tmp_path, 1)
    put(former, 0)
    (former / "offsets" / ".1.tmp").write_text("v")
    assert not any(".1.tmp" in name for name in files(take_over(tmp_path, 2)))


def test_a_copy_that_fails_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(take_over(tmp_path, 1), 0)

    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.spark.checkpoints.os.link", full)
    monkeypatch.setattr("penstock.spark.checkpoints.shutil.copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        take_over(tmp_path, 2)
    assert newest(tmp_path) == tmp_path / "checkpoint-1"
    monkeypatch.undo()
    assert "commits/0" in files(take_over(tmp_path, 2))


def test_a_checkpoint_is_filled_where_spark_waits_for_it(tmp_path: Path) -> None:
    put(take_over(tmp_path, 1), 0)
    waiting = path_of(tmp_path, 2)
    (waiting / "offsets").mkdir(parents=True)
    (waiting / "metadata").write_text('{"id":"its own"}')
    assert newest(tmp_path) == path_of(tmp_path, 1)
    assert "offsets/0" in files(take_over(tmp_path, 2))
    assert (waiting / "metadata").read_text() == '{"id":"its own"}'


@pytest.mark.parametrize("name", ["offsets/1", "commits/1"])
@pytest.mark.parametrize("text", ["", "v1\n{", "PK\x03"])
def test_damaged_files_are_named(tmp_path: Path, name: str, text: str) -> None:
    former = take_over(tmp_path, 1)
    put(former, 0)
    put(former, 1)
    (former / name).write_text(text)
    with pytest.raises(RunError) as caught:
        take_over(tmp_path, 2)
    assert str(caught.value).startswith(f"the checkpoint file {former / name} is damaged")


def test_a_missing_plan_of_a_batch_that_was_done_is_named(tmp_path: Path) -> None:
    former = take_over(tmp_path, 1)
    put(former, 0)
    put(former, 1)
    (former / "offsets" / "1").unlink()
    with pytest.raises(RunError) as caught:
        take_over(tmp_path, 2)
    assert str(caught.value) == (
        f"the checkpoint file {former / 'offsets' / '1'} is missing. "
        "Restore the file from a backup, or start afresh with --fresh."
    )


def test_the_last_batch_is_done_again_if_nobody_wrote_that_it_was_done(tmp_path: Path) -> None:
    former = take_over(tmp_path, 1)
    put(former, 0)
    put(former, 1)
    (former / "commits" / "1").unlink()
    assert "offsets/1" in files(take_over(tmp_path, 2))


@pytest.mark.parametrize("batches", [0, 1])
def test_nobody_goes_back_behind_an_owner_whose_mark_is_gone(tmp_path: Path, batches: int) -> None:
    put(take_over(tmp_path, 1), 0)
    lost = take_over(tmp_path, 2)
    for batch in range(batches):
        put(lost, 1 + batch)
    (lost / "penstock-whole").unlink()
    if not batches:
        assert files(take_over(tmp_path, 3)) == files(path_of(tmp_path, 1))
        return
    with pytest.raises(RunError, match=rf"the checkpoint file {lost}/penstock-whole is missing"):
        take_over(tmp_path, 3)


def test_the_first_owner_too_is_missed_without_its_mark(tmp_path: Path) -> None:
    lost = take_over(tmp_path, 1)
    put(lost, 0)
    (lost / "penstock-whole").unlink()
    with pytest.raises(RunError, match="penstock-whole is missing"):
        take_over(tmp_path, 2)


@pytest.mark.parametrize("damage", ["none", "gone", "cut off"])
def test_a_new_owner_is_a_new_query_to_spark(tmp_path: Path, damage: str) -> None:
    former = take_over(tmp_path, 1)
    put(former, 0)
    if damage == "gone":
        (former / "metadata").unlink()
    elif damage == "cut off":
        (former / "metadata").write_text("")
    told = json.loads((take_over(tmp_path, 2) / "metadata").read_text())
    assert len(told["id"]) == 36


def test_only_the_latest_owner_counts(tmp_path: Path) -> None:
    folder = FragmentFolder(tmp_path / "heavy")
    folder.claim(3)
    folder.claim(3)
    folder.claim(4)
    with pytest.raises(RunError) as caught:
        folder.check_owner(3)
    assert str(caught.value) == (
        "fragment heavy belongs to a newer owner (epoch 4, this one has 3). "
        "This owner was replaced and must stop."
    )
    with pytest.raises(RunError):
        folder.claim(3)
    folder.check_owner(4)
