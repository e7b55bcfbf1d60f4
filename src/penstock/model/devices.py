"""Devices that hear the results of queries, and the broadcast by which they do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import InputError, listed, suggestion

SORTED, INDEXED, WEIGHTED = "sorted", "indexed", "weighted"
ORGANISATIONS = (SORTED, INDEXED, WEIGHTED)


@dataclass(frozen=True)
class Broadcast:
    """The channel, how results are arranged on it, and what it carries beside them.

    ``cycle_s`` is the source time whose results one cycle carries; energies are those of one cycle.

    >>> Broadcast("sorted", bandwidth_per_s=0)
    Traceback (most recent call last):
    penstock.errors.InputError: the broadcast has the bandwidth 0. Give more than zero.
    """

    organisation: str
    bandwidth_per_s: float
    cycle_s: float = 1.0
    raw_cut: bool = True
    power_up_j: float = 0.0
    index_entry_bytes: float = 0.0
    descriptor_bytes: float = 0.0

    def __post_init__(self) -> None:
        if self.organisation not in ORGANISATIONS:
            raise InputError(
                f"the broadcast has the organisation {self.organisation}; "
                f"there are {listed(ORGANISATIONS)}",
                hint=suggestion(self.organisation, ORGANISATIONS),
            )
        what = "the broadcast"
        check_above_zero(what, "bandwidth", self.bandwidth_per_s)
        check_above_zero(what, "cycle", self.cycle_s)
        check_at_least_zero(what, "power_up", self.power_up_j)
        check_at_least_zero(what, "index_entry", self.index_entry_bytes)
        check_at_least_zero(what, "descriptor", self.descriptor_bytes)


@dataclass(frozen=True)
class DeviceProfile:
    """What a device says of itself when it registers: cycles per second, watts, joules.

    >>> DeviceProfile("d1", 0, 0.16, 1.0)
    Traceback (most recent call last):
    penstock.errors.InputError: device d1 has the speed 0. Give more than zero.
    """

    name: str
    speed_per_s: float
    processing_w: float
    receiving_w: float
    battery_j: float | None = None

    def __post_init__(self) -> None:
        what = f"device {self.name}"
        check_above_zero(what, "speed", self.speed_per_s)
        check_at_least_zero(what, "processing_power", self.processing_w)
        check_at_least_zero(what, "receiving_power", self.receiving_w)
        if self.battery_j is not None:
            check_above_zero(what, "battery", self.battery_j)

    def to_record(self) -> dict[str, float]:
        """Its numbers by field, without those that nobody knows."""
        return {
            key: value for key, value in vars(self).items() if key != "name" and value is not None
        }


@dataclass(frozen=True)
class GivenCost:
    """What a deployment file says of an operator; None is left to be measured."""

    cycles: float | None = None
    selectivity: float | None = None
    projectivity: float | None = None

    def __post_init__(self) -> None:
        for key, value in vars(self).items():
            if value is not None:
                check_at_least_zero("an operator", key, value)


@dataclass(frozen=True)
class DeviceQuery:
    """A query whose result is for devices: who hears it, and what is settled about it.

    ``cut`` is how many operators stay on the server, ``costs`` what is given of operators by name,
    ``rate_per_s`` and ``tuple_bytes`` what is given of the stream it begins with.
    """

    name: str
    devices: tuple[str, ...]
    cut: int | None = None
    costs: Mapping[str, GivenCost] = field(default_factory=dict)
    rate_per_s: float | None = None
    tuple_bytes: float | None = None

    def __post_init__(self) -> None:
        if self.rate_per_s is not None:
            check_at_least_zero(f"query {self.name}", "rate", self.rate_per_s)
        if self.tuple_bytes is not None:
            check_at_least_zero(f"query {self.name}", "tuple_bytes", self.tuple_bytes)


@dataclass(frozen=True)
class DeviceSection:
    """What a deployment says of its devices.

    Whoever knows the token of a system's devices may hear its broadcast; an ``is_open`` one
    everybody. The first cycle waits until a query has ``listeners``. ``recut`` says whether cuts
    follow what is measured.
    """

    broadcast: Broadcast
    devices: tuple[DeviceProfile, ...]
    queries: tuple[DeviceQuery, ...]
    is_open: bool = False
    listeners: int = 1
    recut: bool = True

    def __post_init__(self) -> None:
        if self.listeners < 1:
            raise InputError(
                f"the broadcast waits for {self.listeners} listeners", hint="Give at least one."
            )

    def query(self, name: str) -> DeviceQuery | None:
        """The query of this name, if its result is for devices."""
        return next((query for query in self.queries if query.name == name), None)

    def profiles_of(self, query: DeviceQuery) -> list[DeviceProfile]:
        """The profiles of those who hear a query."""
        by_name = {device.name: device for device in self.devices}
        return [by_name[name] for name in query.devices]


def check_above_zero(what: str, key: str, value: float) -> None:
    """Raises unless ``value`` is a number above zero."""
    if not 0 < value < math.inf:
        raise InputError(f"{what} has the {key} {value:g}", hint="Give more than zero.")


def check_at_least_zero(what: str, key: str, value: float) -> None:
    """Raises unless ``value`` is a number, zero or more."""
    if not 0 <= value < math.inf:
        raise InputError(f"{what} has the {key} {value:g}", hint="Give zero or more.")
