"""The energy of a plan, by what it is spent on and by device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.model.devices import INDEXED
from penstock.power.cuts import CutTable, flow_of
from penstock.power.problem import PowerProblem


@dataclass(frozen=True)
class Energy:
    """Joules of all devices in one cycle: for listening and for computing."""

    tuning_j: float
    processing_j: float

    @property
    def total_j(self) -> float:
        return self.tuning_j + self.processing_j


def energy_of(table: CutTable, entries: Ints) -> Energy:
    """What a plan costs all devices together, computed afresh: O(n log n) for n queries."""
    listening = float(table.weights @ heard_bytes(table, entries)) * table.seconds_per_byte
    waking = float(table.clients.sum()) * power_ups(table) * table.broadcast.power_up_j
    return Energy(listening + waking, float(table.processing_j[entries].sum()))


def power_ups(table: CutTable) -> int:
    """How often a receiver is switched on in a cycle: for the index and for the result, or once."""
    return 2 if table.broadcast.organisation == INDEXED else 1


def air_order(table: CutTable, entries: Ints) -> Ints:
    """The queries in the order in which a plan's results are on the air; equal ones as in the file.

    An index finds results wherever they are, so its order is that of ``sorted``.
    """
    return np.argsort(table.keys[entries], kind="stable")


def index_bytes(table: CutTable, entries: Ints) -> float:
    """The size of the index: an entry for every query that has a result."""
    if table.broadcast.organisation != INDEXED:
        return 0.0
    return float(np.count_nonzero(table.sizes[entries])) * table.broadcast.index_entry_bytes


def heard_bytes(table: CutTable, entries: Ints) -> Floats:
    """By query the bytes that each of its listeners receives in a cycle."""
    sizes = table.sizes[entries]
    if table.broadcast.organisation == INDEXED:
        return sizes + index_bytes(table, entries)
    order = air_order(table, entries)
    heard = np.empty_like(sizes)
    heard[order] = np.cumsum(sizes[order])
    return heard


def cycle_bytes(table: CutTable, entries: Ints) -> float:
    """The length of a cycle on the air."""
    return float(table.sizes[entries].sum()) + index_bytes(table, entries)


@dataclass(frozen=True)
class DeviceUse:
    """What one device does in a cycle, over all queries it hears: seconds and joules."""

    tuned_s: float
    processed_s: float
    energy: Energy

    def life_s(self, battery_j: float, cycle_s: float) -> float:
        """How long a battery lasts, in seconds of source time; infinite if nothing is used.

        >>> DeviceUse(0.5, 0.25, Energy(1.0, 1.0)).life_s(battery_j=7_200.0, cycle_s=1.0)
        3600.0
        """
        used_j = self.energy.total_j
        return battery_j / used_j * cycle_s if used_j > 0 else float("inf")


def device_uses(problem: PowerProblem, table: CutTable, entries: Ints) -> Mapping[str, DeviceUse]:
    """What a plan asks of every device; one with several queries listens for each of them."""
    tuned_s = heard_bytes(table, entries) * table.seconds_per_byte
    cuts = table.cut_numbers(entries)
    found = {device.name: [0.0, 0.0, 0] for device in problem.devices}
    for at, query in enumerate(problem.queries):
        cycles = float(flow_of(problem, query).cycles[cuts[at]])
        for device in problem.listeners(query):
            use = found[device.name]
            use[0] += float(tuned_s[at])
            use[1] += cycles / device.speed_per_s
            use[2] += power_ups(table)
    return {
        name: _device_use(problem, name, tuned, processed, ups)
        for name, (tuned, processed, ups) in found.items()
    }


def _device_use(
    problem: PowerProblem, name: str, tuned_s: float, processed_s: float, ups: float
) -> DeviceUse:
    device = problem.device_by_name[name]
    tuning_j = tuned_s * device.receiving_w + ups * problem.broadcast.power_up_j
    return DeviceUse(tuned_s, processed_s, Energy(tuning_j, processed_s * device.processing_w))
