"""Names of different things have different types, though all of them are text.

Most fragments have one part, and fragment, part, channel and reader are then called alike; where a
join is spread over nodes they are not. So each name is made in one place: by
:class:`~penstock.model.parts.Part`, by :class:`~penstock.model.fragments.Fragment`, or here.
"""

from __future__ import annotations

from typing import NewType

FragmentId = NewType("FragmentId", str)
"""A fragment as it was planned, whatever its parts are."""

PartId = NewType("PartId", str)
"""What a node owns: the name of a unit, of a member of a bundle, and of the folder it keeps."""

ChannelId = NewType("ChannelId", str)
"""A channel, by the stream that it carries or the part that fills it."""

ReaderId = NewType("ReaderId", str)
"""A reader of channels: batches are kept for it."""

NodeId = NewType("NodeId", str)
"""A node."""


def reader_for(part: PartId) -> ReaderId:
    """As what a part of a fragment reads its inputs.

    >>> reader_for(PartId("pairs_part2"))
    'pairs_part2'
    """
    return ReaderId(part)


def channel_for(stream: str) -> ChannelId:
    """The channel of a stream that is whole: one that comes in, or a fragment's result.

    >>> channel_for("readings")
    'readings'
    """
    return ChannelId(stream)
