"""Where everything of a system lies in its state folder; spelled here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.model.ids import ChannelId, FragmentId, NodeId, PartId


@dataclass(frozen=True)
class StateLayout:
    """The paths under one state folder; nothing is opened or made.

    >>> from penstock.model.ids import channel_for
    >>> StateLayout(Path("state")).channel(channel_for("readings"))
    PosixPath('state/channels/readings')
    """

    path: Path

    @property
    def channels(self) -> Path:
        """All channels."""
        return self.path / "channels"

    @property
    def fragments(self) -> Path:
        """What fragments keep."""
        return self.path / "fragments"

    @property
    def dead_letters(self) -> Path:
        """Rows that could not be used, of all streams."""
        return self.path / "dead_letters"

    @property
    def bundles(self) -> Path:
        """The logs of light fragments, one for each process that runs any."""
        return self.path / "bundles"

    @property
    def epoch(self) -> Path:
        """The number that was given out last, where one process runs everything."""
        return self.path / "epoch"

    @property
    def parts(self) -> tuple[Path, ...]:
        """All that there may be in it."""
        streams, rehearsals = self.path / "streams", self.path / "rehearsals"
        folders = (self.channels, self.fragments, self.bundles, streams, self.dead_letters)
        return (*folders, rehearsals, self.epoch)

    def channel(self, channel: ChannelId) -> Path:
        """Where the batches of a channel lie."""
        return self.channels / channel

    def fragment(self, part: PartId) -> Path:
        """What a part of a fragment keeps: its checkpoint, its state, how far it is."""
        return self.fragments / part

    def groups(self, join: FragmentId) -> Path:
        """Where the parts of a join say who owns which group."""
        return self.fragments / join / "groups"

    def runs(self, part: PartId) -> Path:
        """Where the sorted runs of a join lie, all of which can be made again."""
        return self.fragment(part) / "runs"

    def stream(self, name: str) -> Path:
        """What the intake of a stream keeps."""
        return self.path / "streams" / name

    def letters(self, stream: str) -> Path:
        """Rows of a stream that could not be used."""
        return self.dead_letters / stream

    def rehearsals(self, node: NodeId) -> Path:
        """Where a node tries out what is to come."""
        return self.path / "rehearsals" / node

    def of_unit(self, name: PartId) -> tuple[Path, ...]:
        """All that a unit of this name may have beside its channel."""
        return (self.fragment(name), self.stream(name), self.letters(name))
