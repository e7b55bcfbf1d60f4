"""Fragments: operators that run together, as one piece of work, and move together."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.beginnings import FIRST, Beginning
from penstock.model.ids import ChannelId, PartId, ReaderId, channel_for, reader_for
from penstock.model.operators import Operator, SqlWrite
from penstock.model.parts import JoinSpread, Part
from penstock.model.schema import checked_name


@dataclass(frozen=True)
class Fragment:
    """Connected operators with one output, one state and one place in their inputs.

    ``inputs`` are the streams it reads from outside or from other fragments; ``output`` is the
    stream it gives, ``queries`` the queries whose result that is, ``writes`` what puts it into
    databases. ``is_read`` says that other fragments read it through a channel. ``beginning`` says
    since when it counts. With ``part`` it is one of several parts, each with a channel of its own;
    with ``gathers`` it is what makes one stream of the channels of such parts. ``taps`` are streams
    inside it that others share, ``shared`` the inputs that it shares with others. Without
    ``has_tail`` it gives its taps and nothing else.
    """

    name: str
    inputs: tuple[str, ...]
    operators: tuple[Operator, ...]
    output: str
    writes: tuple[SqlWrite, ...] = ()
    queries: tuple[str, ...] = ()
    is_read: bool = False
    beginning: Beginning = FIRST
    part: Part | None = None
    gathers: JoinSpread | None = None
    taps: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    has_tail: bool = True

    def __post_init__(self) -> None:
        checked_name(self.name, "fragment")

    @property
    def id(self) -> PartId:
        """What a node owns of it: the part that it is, or all of it."""
        return PartId(self.name) if self.part is None else self.part.id

    @property
    def reader(self) -> ReaderId:
        """As what it reads its inputs."""
        return reader_for(self.id)

    @property
    def channel(self) -> ChannelId:
        """The channel it fills, if others read it."""
        return channel_for(self.output) if self.part is None else self.part.channel

    @property
    def is_whole(self) -> bool:
        """Whether it is its only part."""
        return self.part is None and self.gathers is None

    @property
    def stateful(self) -> bool:
        return any(operator.stateful for operator in self.operators)

    @property
    def is_bound(self) -> bool:
        """Whether it stays on the node it was first put on, whatever the load.

        What uses a database does. Parts of a join stay apart: their groups move instead.
        """
        is_movable = all(operator.movable for operator in (*self.operators, *self.writes))
        return self.part is not None or not is_movable

    @property
    def delay_us(self) -> int:
        """How far the output's watermark lies behind that of the inputs."""
        return self.delay_of_us(self.output)

    def delay_of_us(self, stream: str) -> int:
        """How far the watermark of its output, or of a stream inside, lies behind the inputs'."""
        delays = dict.fromkeys(self.inputs, 0)
        for operator in self.operators:
            behind = max(delays.get(input.stream, 0) for input in operator.inputs)
            delays |= dict.fromkeys(operator.outputs, behind + operator.delay_us)
        return delays.get(stream, 0)
