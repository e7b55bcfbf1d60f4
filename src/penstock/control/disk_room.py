"""Whether the disk has room for the windows of joins: before they run, and while they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.channels.channel import Channel
from penstock.channels.disk_use import folder_bytes, free_bytes
from penstock.channels.layout import StateLayout
from penstock.control.system import System
from penstock.feeds.rates import event_rates
from penstock.kernels.join_plan import JoinPlan
from penstock.kernels.join_room import StreamFlow, light_joins, window_room
from penstock.model.durations import US_PER_S
from penstock.model.fragments import Fragment
from penstock.model.ids import ChannelId, PartId
from penstock.model.network import Network
from penstock.model.parts import parts_of

_LATEST = 64
"""How many of a stream's batches are looked at to see how it flows."""


def expected_shortages(
    network: Network, fragments: Iterable[Fragment], folder: Path
) -> tuple[str, ...]:
    """What to say of joins for whose windows ``folder`` has no room, by what streams say.

    Streams whose rate nobody knows before they run count as empty.
    """
    joins = list(light_joins((network, fragment) for fragment in fragments))
    if not joins:
        return ()
    flows = {name: StreamFlow(rate) for name, rate in event_rates(network).items()}
    free, where = free_bytes(folder), folder.absolute()
    told = (window_room(name, plan, flows).shortage(free, where) for name, plan in joins)
    return tuple(text for text in told if text is not None)


def shortages(system: System, state: Path) -> dict[str, str]:
    """The same of the joins that run, by their names and by how their streams flow."""
    layout, found = StateLayout(state), dict[str, str]()
    units = [
        (unit.network, unit.fragment) for unit in system.units.values() if unit.fragment is not None
    ]
    for name, plan in light_joins(units):
        seen = {
            stream: SeenStream.of(Channel(layout.channel(ChannelId(stream))))
            for stream in plan.streams
        }
        flows = {stream: known.flow for stream, known in seen.items() if known.flow is not None}
        held = sum(known.kept_bytes for known in seen.values()) + _runs_bytes(name, plan, layout)
        text = window_room(name, plan, flows).shortage(free_bytes(state), state, held)
        if text is not None:
            found[name] = text
    return found


@dataclass(frozen=True)
class SeenStream:
    """How a stream flows by its latest batches, if that can be told; what its channel takes."""

    flow: StreamFlow | None
    kept_bytes: float

    @classmethod
    def of(cls, channel: Channel) -> SeenStream:
        """What the manifests of a channel say."""
        # There is no channel yet where nobody has begun to fill it.
        last = channel.last() if channel.folder.exists() else None
        if last is None:
            return cls(None, 0.0)
        oldest = channel.oldest()
        numbers = range(max(oldest, last.sequence + 1 - _LATEST), last.sequence)
        # Some may be freed while they are looked at.
        known = (channel.manifest(number) for number in numbers)
        latest = [*(manifest for manifest in known if manifest is not None), last]
        taken = sum(manifest.bytes for manifest in latest)
        kept = taken * (last.sequence + 1 - oldest) / len(latest)
        began_us, ended_us = latest[0].watermark_us, last.watermark_us
        rows = sum(manifest.rows for manifest in latest[1:])
        if last.ended or not rows or began_us is None or ended_us is None or ended_us <= began_us:
            return cls(None, kept)
        row_bytes = taken / (rows + latest[0].rows)
        return cls(StreamFlow(rows * US_PER_S / (ended_us - began_us), row_bytes), kept)


def _runs_bytes(join: str, plan: JoinPlan, layout: StateLayout) -> int:
    parts = [PartId(join)]
    if plan.part is not None:
        parts = [part.id for part in parts_of(join, plan.part.spread)]
    return sum(folder_bytes(layout.runs(part)) for part in parts)
