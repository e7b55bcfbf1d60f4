"""Channels: committing once, fencing, reading, freeing, and dying at any moment."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path

import pytest

from penstock.channels import writer as module
from penstock.channels.channel import Channel
from penstock.channels.durable import create_once
from penstock.channels.manifest import ChannelFile, Manifest
from penstock.channels.writer import Writer
from penstock.errors import InputError, RunError

from channels.disk import Died, dying_at, full, names, watched

pytestmark = pytest.mark.core


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel.open(tmp_path / "readings")


def commit(writer: Writer, batch_id: int, **told: object) -> Manifest:
    """Commits a batch of one small file."""
    name = f"{batch_id}-{writer.epoch}.parquet"
    (writer.channel.data / name).write_text(f"batch {batch_id}")
    return writer.commit(batch_id, [ChannelFile(name, 1, 10)], **told)  # type: ignore[arg-type]


def batches(channel: Channel, start: int = 0) -> list[int]:
    return [manifest.batch_id for manifest in channel.newer(start)]


def test_an_empty_channel(channel: Channel) -> None:
    assert channel.last() is None
    assert channel.sequences() == []
    assert channel.oldest() == 0
    assert list(channel.newer(0)) == []
    assert channel.manifests(0, 0) == []
    assert Writer(channel, 1).last is None


def test_batches_are_numbered_without_gaps(channel: Channel) -> None:
    writer = Writer(channel, 1)
    for batch_id in (0, 1, 5, 9):
        commit(writer, batch_id)
    assert [manifest.sequence for manifest in channel.manifests(0, 4)] == [0, 1, 2, 3]
    assert batches(channel) == [0, 1, 5, 9]
    assert batches(channel, 2) == [5, 9]
    assert channel.last() == writer.last == channel.manifest(3)


def test_a_manifest_keeps_what_was_told(channel: Channel) -> None:
    state = {"files": 3, "high": None}
    told = commit(Writer(channel, 4), 7, watermark_us=12, ended=True, writer_state=state)
    assert told == Manifest(0, 4, 7, (ChannelFile("7-4.parquet", 1, 10),), 12, True, None, state)
    assert channel.manifest(0) == told


@pytest.mark.parametrize("again", [5, 4, 0])
def test_committing_a_batch_again_does_nothing(channel: Channel, again: int) -> None:
    writer = Writer(channel, 1)
    first = commit(writer, 5)
    assert commit(writer, again, watermark_us=99) == first
    assert commit(Writer(channel, 2), again) == first
    assert channel.sequences() == [0]


def refused(epoch: int, newer: int) -> str:
    return (
        f"channel readings belongs to a newer writer (epoch {newer}, this one has {epoch}). "
        "This writer is no longer the owner and must stop."
    )


def test_an_old_writer_is_refused_and_its_batch_not_seen(channel: Channel) -> None:
    old = Writer(channel, 1)
    commit(old, 0)
    new = Writer(channel, 2)
    with pytest.raises(RunError) as caught:
        commit(old, 1)
    assert str(caught.value) == refused(1, 2)
    assert batches(channel) == [0]
    commit(new, 1)
    assert [one.epoch for one in channel.newer(0)] == [1, 2]
    assert channel.manifests(0, 2)[1].files == (ChannelFile("1-2.parquet", 1, 10),)


def test_an_old_writer_cannot_come_back(channel: Channel) -> None:
    Writer(channel, 3)
    with pytest.raises(RunError) as caught:
        Writer(channel, 2)
    assert str(caught.value) == refused(2, 3)
    assert Writer(channel, 3).epoch == 3


def test_of_writers_racing_for_a_number_one_wins(channel: Channel) -> None:
    commit(Writer(channel, 1), 0)
    writers = [Writer(channel, 1) for _ in range(8)]
    ready, won, messages = threading.Barrier(8), [], []

    def race(number: int) -> None:
        ready.wait()
        try:
            won.append(writers[number].commit(10 + number, []))
        except RunError as error:
            messages.append(str(error))

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert set(messages) == {
        "batch 1 of channel readings was written by another writer (this one has epoch 1). "
        "This writer is no longer the owner and must stop."
    }
    assert len(messages) == 7
    assert list(channel.newer(1)) == won


def test_a_missing_manifest_is_named(channel: Channel) -> None:
    writer = Writer(channel, 1)
    for batch_id in range(3):
        commit(writer, batch_id)
    channel.entry(1).unlink()
    with pytest.raises(RunError) as caught:
        channel.manifests(0, 3)
    assert str(caught.value) == (
        f"the manifest {channel.folder}/log/00000001.json is missing. "
        "A reader still needs it. Restore it, or start afresh with --fresh."
    )


def test_a_damaged_manifest_is_named_by_all_who_need_it(channel: Channel) -> None:
    writer = Writer(channel, 1)
    for batch_id in range(3):
        commit(writer, batch_id)
    channel.entry(2).write_text("{")
    for use in (
        lambda: Writer(channel, 2),
        channel.last,
        lambda: list(channel.newer(0)),
        lambda: channel.manifests(0, 3),
    ):
        with pytest.raises(RunError, match=r"log/00000002\.json is damaged"):
            use()


def test_a_missing_manifest_is_not_waited_for(channel: Channel) -> None:
    writer = Writer(channel, 1)
    for batch_id in range(3):
        commit(writer, batch_id)
    assert list(channel.newer(3)) == []
    channel.entry(1).unlink()
    with pytest.raises(RunError, match=r"log/00000001\.json is missing"):
        list(channel.newer(0))


def test_the_place_of_a_lost_batch_is_not_given_to_another(channel: Channel) -> None:
    writer = Writer(channel, 1)
    for batch_id in range(3):
        commit(writer, batch_id)
    channel.entry(2).unlink()
    with pytest.raises(RunError, match=r"log/00000002\.json is missing"):
        Writer(channel, 2)


def test_batches_since_a_time(channel: Channel) -> None:
    assert channel.first_since(0.0) == 0
    writer = Writer(channel, 1)
    for batch_id in range(5):
        commit(writer, batch_id)
        os.utime(channel.entry(batch_id), (0, 100.0 + 10 * batch_id))
    found = [channel.first_since(time_s) for time_s in (0.0, 100.0, 101.0, 140.0, 141.0)]
    assert found == [0, 0, 1, 4, 5]
    channel.free(range(5), 3)
    assert channel.first_since(0.0) == 3


def test_a_reader_whose_batches_were_freed_is_told(channel: Channel) -> None:
    channel.register("slow")
    writer = Writer(channel, 1)
    channel.advance("slow", 2)
    for batch_id in range(4):
        commit(writer, batch_id)
    with pytest.raises(RunError, match=r"log/00000001\.json is missing"):
        list(channel.newer(1))


def test_other_damaged_files_are_named_too(channel: Channel) -> None:
    writer = Writer(channel, 1)
    (channel.folder / "readers" / "slow").write_text("oops")
    with pytest.raises(RunError, match="readers/slow is damaged"):
        commit(writer, 0)


def test_a_writer_that_comes_late_to_its_claim_is_refused(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended after it saw that nobody had come, and before it said that it has."""
    claim = module.claim

    def overtaken(folder: Path, epoch: int) -> None:
        if epoch == 5:
            commit(Writer(channel, 6), 0)
        claim(folder, epoch)

    monkeypatch.setattr(module, "claim", overtaken)
    with pytest.raises(RunError, match="epoch 6, this one has 5"):
        Writer(channel, 5)
    assert commit(Writer(channel, 6), 1).sequence == 1


def test_a_writer_replaced_while_it_commits_sets_nothing_back(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended after it saw that it is the owner, while others went on and freed its place."""
    channel.register("reader")
    former = Writer(channel, 1)
    commit(former, 0)
    create = module.create_once

    def late(path: Path, text: str) -> bool:
        if path == channel.entry(1) and not overtaken:
            overtaken.append(path)
            owner = Writer(channel, 2)
            for batch_id in (1, 2, 3):
                channel.advance("reader", batch_id)
                commit(owner, batch_id)
        return create(path, text)

    overtaken: list[Path] = []
    monkeypatch.setattr(module, "create_once", late)
    with pytest.raises(RunError, match="belongs to a newer writer"):
        commit(former, 1)
    assert overtaken
    assert (channel.head(), channel.oldest()) == (3, 3)


def test_what_former_writers_left_is_deleted(channel: Channel) -> None:
    former = Writer(channel, 1)
    commit(former, 0)
    left = [channel.data / f"{batch:010d}-1-0.parquet" for batch in (0, 1, 2)]
    for path in (*left, channel.data / "0000000001-2-0.parquet"):
        path.touch()
    for epoch in (1, 2):
        (channel.data / f".staging-{epoch}-7").mkdir()
    owner = Writer(channel, 2)
    owner.commit(1, [ChannelFile("0000000001-2-0.parquet", 1, 10)])
    assert [path.exists() for path in left] == [False, False, True], "later ones may yet count"
    assert (channel.data / "0000000001-2-0.parquet").exists()
    assert not (channel.data / ".staging-1-7").exists()
    assert (channel.data / ".staging-2-7").exists()


def test_numbers_may_grow_beyond_eight_digits(channel: Channel) -> None:
    channel.entry(99_999_999).write_text(Manifest(99_999_999, 1, 5).to_json())
    commit(Writer(channel, 1), 6)
    assert channel.sequences() == [99_999_999, 100_000_000]


def test_a_batch_the_former_owner_still_put_in_is_taken_as_ours(channel: Channel) -> None:
    former = Writer(channel, 1)
    commit(former, 0)
    owner = Writer(channel, 2)
    # What the former owner does when it was past the check as the new one claimed the channel.
    late = Manifest(1, 1, 1, (ChannelFile("late.parquet", 1, 10),))
    assert create_once(channel.entry(1), late.to_json())
    assert commit(owner, 1) == late
    assert commit(owner, 2).sequence == 2


def test_another_batch_in_our_place_is_refused(channel: Channel) -> None:
    owner = Writer(channel, 2)
    assert create_once(channel.entry(0), Manifest(0, 1, 7).to_json())
    with pytest.raises(RunError, match="was written by another writer"):
        commit(owner, 1)


class TestFreeing:
    def fill(self, channel: Channel, count: int) -> Writer:
        writer = Writer(channel, 1)
        for batch_id in range(count):
            commit(writer, batch_id)
        return writer

    def test_nothing_is_freed_while_nobody_has_registered(self, channel: Channel) -> None:
        """Whoever reads the channel may only be about to start."""
        self.fill(channel, 5)
        assert channel.needed_from() is None
        assert channel.sequences() == [0, 1, 2, 3, 4]
        assert len(names(channel.data)) == 5

    def test_what_nobody_reads_is_kept_up_to_a_limit(self, channel: Channel) -> None:
        writer = Writer(channel, 1, retained_rows=2)
        for batch_id in range(5):
            commit(writer, batch_id)
        assert channel.sequences() == [3, 4]
        channel.register("reader")
        channel.advance("reader", 3)
        commit(writer, 5)
        commit(writer, 6)
        assert channel.sequences() == [3, 4, 5, 6]

    def test_and_batches_without_rows_up_to_another(
        self, channel: Channel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("penstock.channels.writer.RETAINED_BATCHES", 3)
        writer = Writer(channel, 1, retained_rows=100)
        for batch_id in range(10):
            writer.commit(batch_id, [])
        assert channel.sequences() == [7, 8, 9]

    def test_a_reader_that_is_forgotten_holds_nothing(self, channel: Channel) -> None:
        for reader in ("one", "other"):
            channel.register(reader)
        writer = self.fill(channel, 3)
        channel.advance("one", 3)
        channel.forget("other")
        commit(writer, 3)
        assert channel.sequences() == [3]
        channel.forget("nobody")

    def test_unread_rows_are_those_of_the_slowest_reader(self, channel: Channel) -> None:
        writer = self.fill(channel, 5)
        assert writer.unread() == []
        for reader, at in (("fast", 5), ("slow", 2)):
            channel.register(reader)
            channel.advance(reader, at)
        assert writer.unread() == [1, 1, 1]
        assert Writer(channel, 2).unread() == [1, 1, 1]

    def test_what_a_refused_writer_leaves_below_does_not_count(self, channel: Channel) -> None:
        """It was allowed to commit, slept through being replaced, and then carried it out."""
        channel.register("reader")
        writer = self.fill(channel, 4)
        late = channel.entry(1).read_text()
        channel.advance("reader", 3)
        commit(writer, 4)
        channel.entry(1).write_text(late)
        assert channel.oldest() == 3
        assert channel.sequences() == [3, 4]
        commit(Writer(channel, 2), 5)
        assert channel.sequences() == [3, 4, 5]

    def test_the_slowest_reader_decides(self, channel: Channel) -> None:
        for reader in ("fast", "slow", "slowest"):
            channel.register(reader)
        writer = self.fill(channel, 5)
        channel.advance("fast", 5)
        channel.advance("slow", 3)
        commit(writer, 5)
        assert channel.sequences() == [0, 1, 2, 3, 4, 5]
        channel.advance("slowest", 2)
        commit(writer, 6)
        assert channel.needed_from() == 2
        assert channel.sequences() == [2, 3, 4, 5, 6]
        kept = {file.name for one in channel.newer(2) for file in one.files}
        assert set(names(channel.data)) == kept

    def test_the_newest_batch_always_stays(self, channel: Channel) -> None:
        channel.register("reader")
        writer = self.fill(channel, 3)
        channel.advance("reader", 99)
        commit(writer, 3)
        assert channel.sequences() == [3]
        # A writer started now knows where to go on.
        assert commit(Writer(channel, 2), 4).sequence == 4

    def test_a_writer_started_later_frees_what_is_left(self, channel: Channel) -> None:
        channel.register("reader")
        self.fill(channel, 5)
        channel.advance("reader", 4)
        commit(Writer(channel, 2), 5)
        assert channel.sequences() == [4, 5]

    def test_a_known_reader_keeps_its_place(self, channel: Channel) -> None:
        channel.register("reader")
        channel.advance("reader", 4)
        channel.register("reader")
        assert channel.needed_from() == 4

    def test_a_new_reader_begins_at_the_oldest_batch_kept(self, channel: Channel) -> None:
        channel.register("old")
        writer = self.fill(channel, 5)
        channel.advance("old", 3)
        commit(writer, 5)
        channel.register("new")
        assert channel.oldest() == 3
        assert batches(channel, channel.oldest()) == [3, 4, 5]
        commit(writer, 6)
        assert channel.oldest() == 3

    def test_reading_freed_batches_is_an_error(self, channel: Channel) -> None:
        channel.register("reader")
        writer = self.fill(channel, 5)
        channel.advance("reader", 3)
        commit(writer, 5)
        with pytest.raises(RunError, match=r"log/00000000\.json is missing"):
            channel.manifests(0, 6)

    def test_a_reader_has_a_proper_name(self, channel: Channel) -> None:
        with pytest.raises(InputError, match=r"^'\.\./x' cannot name a reader"):
            channel.register("../x")

    def test_dropping_a_channel_leaves_nothing(self, channel: Channel) -> None:
        self.fill(channel, 2)
        channel.drop()
        assert not channel.folder.exists()
        channel.drop()


def whole(channel: Channel) -> list[int]:
    """The batches a reader finds, each with its file; raises if any is broken."""
    found = list(channel.newer(channel.oldest()))
    for manifest in found:
        assert manifest.sequence == found[0].sequence + found.index(manifest)
        for file in manifest.files:
            text = (channel.data / file.name).read_text()
            assert text == f"batch {manifest.batch_id}"
    return [manifest.batch_id for manifest in found]


@pytest.mark.parametrize("after", [False, True])
def test_dying_at_any_step_of_a_commit_leaves_the_old_or_the_new_state(
    tmp_path: Path, after: bool
) -> None:
    outcomes: Counter[str] = Counter()
    for step in range(1, 40):
        channel = Channel.open(tmp_path / str(step))
        channel.register("reader")
        writer = Writer(channel, 1)
        for batch_id in range(3):
            commit(writer, batch_id)
        channel.advance("reader", 2)
        try:
            with dying_at(step, after=after):
                commit(writer, 3)
        except Died:
            pass
        else:
            outcomes["no death"] += 1
            break
        # Freed or not yet freed: what the reader still needs is there.
        assert whole_from(channel, 2) in ([2], [2, 3])
        outcomes["new" if channel.last().batch_id == 3 else "old"] += 1  # type: ignore[union-attr]
        again = Writer(channel, 2)
        assert commit(again, 3).batch_id == 3
        commit(again, 4)
        assert whole(channel) == [2, 3, 4]
    assert outcomes["old"] > 0 and outcomes["new"] > 0
    assert outcomes["no death"] == 1


def whole_from(channel: Channel, start: int) -> list[int]:
    """The batches from ``start`` on, which must be whole."""
    found = list(channel.newer(start))
    assert all((channel.data / file.name).exists() for one in found for file in one.files)
    return [one.batch_id for one in found]


@pytest.mark.parametrize("after", [False, True])
def test_dying_while_a_writer_claims_its_epoch(tmp_path: Path, after: bool) -> None:
    for step in range(1, 10):
        channel = Channel.open(tmp_path / str(step))
        commit(Writer(channel, 1), 0)
        try:
            with dying_at(step, after=after):
                Writer(channel, 2)
        except Died:
            commit(Writer(channel, 3), 1)
            assert whole(channel) == [0, 1]
        else:
            return
    raise AssertionError("claiming takes this many changes?")


def test_what_a_dead_writer_left_behind_does_not_matter(channel: Channel) -> None:
    writer = Writer(channel, 1)
    commit(writer, 0)
    for folder in ("log", "readers", "data", "."):
        (channel.folder / folder / ".00000001.json.5f2a").write_text("{")
    (channel.folder / "log" / "00000001.json.tmp").write_text("{")
    (channel.data / "1-1.parquet").write_text("half a fi")
    assert Writer(channel, 2).last == writer.last
    commit(Writer(channel, 2), 1)
    assert whole(channel) == [0, 1]
    assert channel.needed_from() is None


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_full_disk_makes_nothing_visible_and_may_be_tried_again(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    writer = Writer(channel, 1)
    commit(writer, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(OSError, match="No space left"):
            commit(writer, 1)
    assert whole(channel) == [0]
    commit(writer, 1)
    assert whole(channel) == [0, 1]


def cost(channel: Channel, writer: Writer, first: int, count: int) -> Counter[str]:
    """What some commits and the look for them cost in files opened and folders listed."""
    with watched() as counts:
        for batch_id in range(first, first + count):
            writer.commit(batch_id, [])
            assert len(list(channel.newer(batch_id))) == 1
    return counts


def test_the_three_thousandth_batch_costs_as_much_as_the_first(channel: Channel) -> None:
    writer = Writer(channel, 1)
    writer.commit(0, [])
    early = cost(channel, writer, 1, 19)
    # All the entries between the first and the last are one file: writing them takes seconds.
    channel.entry(20).write_text(Manifest(20, 1, 20).to_json())
    for sequence in range(21, 2_999):
        channel.entry(sequence).hardlink_to(channel.entry(20))
    channel.entry(2_999).write_text(Manifest(2_999, 1, 2_999).to_json())
    writer = Writer(channel, 1)
    writer.commit(3_000, [])  # The first one looks at what others left.
    late = cost(channel, writer, 3_001, 19)
    assert late == early
    assert len(channel.sequences()) == 3_020


def test_a_channel_whose_reader_keeps_up_stays_short(channel: Channel) -> None:
    channel.register("reader")
    writer = Writer(channel, 1)
    for batch_id in range(200):
        commit(writer, batch_id)
        channel.advance("reader", batch_id)
        assert len(channel.sequences()) <= 3
        assert len(names(channel.data)) <= 3
