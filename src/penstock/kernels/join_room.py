"""How much room on disk the windows of a join take: known before there is too little of it.

The rows that may still meet a partner lie in the channels, and once more, sorted, in the join's
runs; of a join in parts every part has runs of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.kernels.engine_choice import choose_engine
from penstock.kernels.join_plan import JoinPlan, PlannedSide
from penstock.model.durations import US_PER_S
from penstock.model.fragments import Fragment
from penstock.model.network import Network
from penstock.model.operators import WindowJoin
from penstock.model.parts import parts_of
from penstock.model.types import DataType

_BYTES = {DataType.BOOLEAN: 1, DataType.INT: 4, DataType.DATE: 4, DataType.STRING: 24,
          DataType.BINARY: 24}  # fmt: skip
"""Of a value; of strings and binaries, whose length nobody knows before, a short one."""
_WIDE = 8
_INDEX_BYTES = 20
"""Of a row in the index of a run: place, time and number."""
_EXPIRED = 1.5
"""What lies in runs for each row in the window: no more than half a window is kept too long."""


@dataclass(frozen=True)
class StreamFlow:
    """Rows of a stream in a second of event time; bytes of one in its channel, where known."""

    rows_per_s: float
    row_bytes: float | None = None


@dataclass(frozen=True)
class SideRoom:
    """The window of one side: rows in a second, for how long, bytes of each."""

    stream: str
    rows_per_s: float
    window_s: float
    row_bytes: float

    @property
    def rows(self) -> float:
        """The rows in a window that is full."""
        return self.rows_per_s * self.window_s


@dataclass(frozen=True)
class WindowRoom:
    """What the windows of a join take when they are full."""

    join: str
    sides: tuple[SideRoom, ...]

    @property
    def bytes(self) -> float:
        """On disk, of both sides and in all parts."""
        return sum(side.rows * side.row_bytes for side in self.sides)

    def shortage(self, free_bytes: float, folder: Path, held_bytes: float = 0.0) -> str | None:
        """What to say where they do not fit; ``held_bytes`` of them are there already.

        >>> side = SideRoom("calls", rows_per_s=5_000, window_s=3_600, row_bytes=100)
        >>> print(WindowRoom("pairs", (side,)).shortage(1.2e9, Path("/state")))
        the windows of pairs need 1.8 GB (calls 5,000 rows/s for 3,600 s), and 1.2 GB are free \
in /state: shorten the time bound in ON, select fewer columns, or keep the state on a larger disk
        >>> WindowRoom("pairs", (side,)).shortage(1.2e9, Path("/state"), held_bytes=1e9)
        """
        if self.bytes - held_bytes <= free_bytes:
            return None
        held = f", {_size(held_bytes)} of which they have" if held_bytes else ""
        flows = "; ".join(
            f"{side.stream} {side.rows_per_s:,.0f} rows/s for {side.window_s:,.0f} s"
            for side in self.sides
        )
        return (
            f"the windows of {self.join} need {_size(self.bytes)} ({flows}){held}, and "
            f"{_size(free_bytes)} are free in {folder}: shorten the time bound in ON, select "
            "fewer columns, or keep the state on a larger disk"
        )


def light_joins(units: Iterable[tuple[Network, Fragment]]) -> Iterator[tuple[str, JoinPlan]]:
    """The joins that kernels run, each once however many parts it has; units with their networks.

    What Spark's own join keeps lies in its state store.
    """
    for network, fragment in units:
        is_again = fragment.part is not None and fragment.part.number > 1
        if is_again or not any(isinstance(operator, WindowJoin) for operator in fragment.operators):
            continue
        plan = choose_engine(network, fragment).plan
        if isinstance(plan, JoinPlan):
            yield (fragment.name if plan.part is None else plan.part.whole), plan


def window_room(join: str, plan: JoinPlan, flows: Mapping[str, StreamFlow]) -> WindowRoom:
    """What a join takes, as far as it is known how its streams flow."""
    parts = 1 if plan.part is None else len(parts_of(join, plan.part.spread))
    known = [
        _side_room(side, window_us, flows[side.stream], parts)
        for side, window_us in zip(plan.sides, _windows_us(plan), strict=True)
        if side.stream in flows and window_us > 0
    ]
    return WindowRoom(join, tuple(known))


def _windows_us(plan: JoinPlan) -> tuple[int, int]:
    """For how long left and right rows are kept."""
    left_us, right_us = plan.bound.upper_us, -plan.bound.lower_us
    if plan.kind == "left":
        # A left row that is given up looks through its whole bound once more.
        right_us = max(right_us, plan.bound.upper_us - plan.bound.lower_us)
    return left_us, right_us


def _side_room(side: PlannedSide, window_us: int, flow: StreamFlow, parts: int) -> SideRoom:
    lying = flow.row_bytes
    if lying is None:
        lying = sum(_value_bytes(field.type) for field in side.schema)
    sorted_ = _INDEX_BYTES + sum(_value_bytes(column.type) for column in side.columns)
    row_bytes = lying + parts * _EXPIRED * sorted_
    return SideRoom(side.stream, flow.rows_per_s, window_us / US_PER_S, row_bytes)


def _value_bytes(type: DataType) -> int:
    return _BYTES.get(type, _WIDE)


def _size(octets: float) -> str:
    return f"{octets / 1e9:,.1f} GB" if octets >= 1e9 else f"{octets / 1e6:,.0f} MB"
