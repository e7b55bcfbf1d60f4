"""A fragment that runs as a streaming query of its own: its turn, its readers, its account."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Event

from penstock.channels.writer import Writer
from penstock.model.fragments import Fragment
from penstock.model.network import Network
from penstock.spark.fragment_run import FragmentRun
from penstock.spark.progress import ProgressLog
from penstock.spark.sources.channel_reader import ChannelReader, HandedOver

_LOOK_EVERY_S = 0.005
_STOPPED_WITHIN_S = 10.0


@dataclass
class NativeRun:
    """A fragment that a node runs as a streaming query of its own."""

    network: Network
    fragment: Fragment
    epoch: int
    turn: Event = field(default_factory=Event)
    closing: Event = field(default_factory=Event)
    resting: Event = field(default_factory=Event)
    readers: list[ChannelReader] = field(default_factory=list)
    output: Writer | None = None
    run: FragmentRun | None = None
    restarts: int = 0
    rows_in_before: int = 0
    rows_out_before: int = 0
    reached_s: dict[str, float] = field(default_factory=dict)
    progress: ProgressLog = field(init=False)

    def __post_init__(self) -> None:
        self.progress = ProgressLog(self.fragment.name, self.fragment.stateful)

    @property
    def is_held_back(self) -> bool:
        """Whether its own readers are so far behind that it takes nothing more."""
        return self.output is not None and self.output.is_held_back

    def await_turn(self) -> None:
        """Waits until the fragment is ours; raises if it never will be."""
        self.turn.wait()
        if self.closing.is_set():
            self.await_stop()
            raise HandedOver(self.fragment.name)

    def await_stop(self) -> None:
        """Says that no batch is under way, and waits until somebody stops the query."""
        self.resting.set()
        until_s = time.monotonic() + _STOPPED_WITHIN_S
        while self.run is not None and self.run.query.isActive and time.monotonic() < until_s:
            time.sleep(_LOOK_EVERY_S)

    def rows_in(self) -> int:
        """How many rows the batch under way has read.

        An input that is read twice, as by a join with itself, has its rows once.
        """
        return sum(reader.take_planned_rows() for reader in self.readers)

    def arrived_s(self) -> float | None:
        """When the oldest rows of the batch under way entered the system."""
        known = [reader.arrived_s for reader in self.readers if reader.arrived_s is not None]
        return min(known, default=None)

    def waiting_s(self, now_s: float) -> float | None:
        """How long the oldest row has been in the system that no finished batch has taken up."""
        planned_s = self.arrived_s()
        is_done = self.run is None or planned_s == self.run.done_arrived_s
        told = [
            None if is_done else planned_s,
            *(reader.unread_since_s() for reader in self.readers),
        ]
        since_s = min((moment_s for moment_s in told if moment_s is not None), default=None)
        return None if since_s is None else round(max(0.0, now_s - since_s), 3)
