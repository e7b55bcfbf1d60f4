"""Batches that a reader has read and may read again: kept, and not counted as unread."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.channels import writer as module
from penstock.channels.channel import Channel
from penstock.channels.manifest import ChannelFile
from penstock.channels.writer import Writer

pytestmark = pytest.mark.core


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel.open(tmp_path / "s")


def commit(writer: Writer, number: int) -> None:
    writer.commit(number, [ChannelFile(f"{number:010d}-1-0.parquet", 10, 0)])


def test_a_window_keeps_what_was_read(channel: Channel) -> None:
    writer = Writer(channel, 1)
    channel.register("join")
    for number in range(6):
        commit(writer, number)
    channel.keep_window("join", 2)
    channel.advance("join", 5)
    commit(writer, 6)
    assert channel.sequences() == [2, 3, 4, 5, 6]
    assert channel.needed_from() == 2
    channel.keep_window("join", 4)
    commit(writer, 7)
    assert channel.sequences() == [4, 5, 6, 7]
    channel.forget("join")
    assert channel.needed_from() is None


def test_a_window_holds_nobody_back(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_UNREAD_ROWS_AT_MOST", 25)
    writer = Writer(channel, 1)
    channel.register("join")
    for number in range(4):
        commit(writer, number)
    assert writer.is_held_back
    channel.keep_window("join", 0)
    channel.advance("join", 4)
    assert writer.unread() == [] and not writer.is_held_back
    assert channel.sequences() == [0, 1, 2, 3]


def test_a_channel_of_before_there_were_windows(channel: Channel) -> None:
    (channel.folder / "windows").rmdir()
    channel.register("other")
    channel.advance("other", 3)
    assert channel.needed_from() == 3
    channel.keep_window("other", 1)
    assert channel.needed_from() == 1
