"""Fragments: operators that run together, as one piece of work, and move together."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.beginnings import FIRST, Beginning
from penstock.model.operators import Operator, SqlWrite
from penstock.model.schema import checked_name


@dataclass(frozen=True)
class Fragment:
    """Connected operators with one output, one state and one place in their inputs.

    ``inputs`` are the streams it reads from outside or from other fragments; ``output`` is the
    stream it gives, ``queries`` the queries whose result that is, ``writes`` what puts it into
    databases. ``is_read`` says that other fragments read it through a channel. ``beginning`` says
    since when it counts.
    """

    name: str
    inputs: tuple[str, ...]
    operators: tuple[Operator, ...]
    output: str
    writes: tuple[SqlWrite, ...] = ()
    queries: tuple[str, ...] = ()
    is_read: bool = False
    beginning: Beginning = FIRST

    def __post_init__(self) -> None:
        checked_name(self.name, "fragment")

    @property
    def stateful(self) -> bool:
        return any(operator.stateful for operator in self.operators)

    @property
    def is_bound(self) -> bool:
        """Whether something in it may not be handed to another node while it runs."""
        return not all(operator.movable for operator in (*self.operators, *self.writes))

    @property
    def delay_us(self) -> int:
        """How far the output's watermark lies behind that of the inputs."""
        delays = dict.fromkeys(self.inputs, 0)
        for operator in self.operators:
            behind = max(delays.get(input.stream, 0) for input in operator.inputs)
            delays |= dict.fromkeys(operator.outputs, behind + operator.delay_us)
        return delays.get(self.output, 0)
