"""What the REST API answers about broadcasts: what is on the air, and the devices that listen."""

from __future__ import annotations

from pydantic import Field, FiniteFloat

from penstock.control.api_model import ApiModel


class BroadcastQueryAnswer(ApiModel):
    """A query on the air: how many operators stay on the server, what is shipped, who listens."""

    cut: int
    operators: int
    plan: int
    stream: str
    ships: list[str]
    listeners: int
    next: int
    rows: int
    bytes: int
    ended: bool
    switches: bool


class StepAnswer(ApiModel):
    """A shipped operator on a device: rows in and out, seconds of processor time."""

    name: str
    rows_in: int
    rows_out: int
    seconds: float


class DeviceAnswer(ApiModel):
    """A device that listens, or did, as it reports itself: counts since it was first started.

    ``gaps`` are the stretches of event time that it did not hear, ``touched_windows`` the windows
    that lack rows by that, by aggregate. What it has not told yet is zero, or null.
    """

    device: str
    query: str
    listening: bool
    plan: int = 0
    next: int | None = None
    cycles: int = 0
    missed_cycles: int = 0
    lost_results: int = 0
    unreadable: int = 0
    begun_anew: int = 0
    tuned_bytes: int = 0
    slept_bytes: int = 0
    garbage_bytes: int = 0
    replayed_packets: int = 0
    power_ups: int = 0
    rows_in: int = 0
    rows_out: int = 0
    running_s: FiniteFloat | None = None
    tuned_s: FiniteFloat | None = None
    processed_s: FiniteFloat = 0.0
    energy_j: FiniteFloat | None = None
    battery_j: FiniteFloat | None = None
    gaps: list[str] = Field(default_factory=list)
    touched_windows: dict[str, list[tuple[str, str]]] = Field(default_factory=dict)
    steps: list[StepAnswer] = Field(default_factory=list)


class StationAnswer(ApiModel):
    """A broadcast: where it is heard, how long a cycle is on the air, and who listens or did.

    ``batteries`` are the seconds that a device's battery lasts at what it has used so far.
    """

    deployment: str
    pid: int
    port: int
    broadcast: int
    cycle: int
    organisation: str
    open: bool
    airtime_s: float
    cycle_s: float
    overloaded: bool
    queries: dict[str, BroadcastQueryAnswer]
    devices: list[DeviceAnswer]
    batteries: dict[str, float] = Field(default_factory=dict)
