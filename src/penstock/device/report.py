"""What a device has done: bytes and seconds on, energy by the model, and what it did not hear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.feeds.arrow import moment_text
from penstock.model.devices import DeviceProfile
from penstock.model.windows import Window


@dataclass(frozen=True)
class Gap:
    """A stretch of event time of which rows may be missing; from None: all before ``to_us``."""

    from_us: int | None
    to_us: int | None

    def touched(self, window: Window) -> range:
        """The starts of the windows that may lack rows.

        >>> [start for start in Gap(70, 95).touched(Window.of(60, 30))]
        [30, 60, 90]
        """
        slide = window.slide_us
        if self.to_us is None:
            return range(0)
        earliest = self.to_us if self.from_us is None else min(self.from_us, self.to_us)
        first = (earliest - window.size_us) // slide * slide + slide
        return range(first, self.to_us // slide * slide + 1, slide)

    def text(self) -> str:
        """The stretch for people."""
        start = "the beginning" if self.from_us is None else moment_text(self.from_us)
        return f"{start} to {'?' if self.to_us is None else moment_text(self.to_us)}"


@dataclass
class DeviceReport:
    """Counts since a device was first started; energy in joules, times in seconds.

    ``tuned_s`` is how long the bytes it heard are on the air, ``processed_s`` the processor time
    that its shipped operators really took, ``running_s`` how long it has been connected.
    ``begun_anew`` is how often its query had been submitted again, so that windows it kept were no
    longer of any use.
    """

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
    processed_s: float = 0.0
    running_s: float = 0.0
    rows_in: int = 0
    rows_out: int = 0
    gaps: list[Gap] = field(default_factory=list)

    def to_record(self) -> dict[str, Any]:
        """The counts as plain values; :meth:`from_record` reads them back."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> DeviceReport:
        """The report that :meth:`to_record` gave."""
        return cls(**{**record, "gaps": [Gap(**gap) for gap in record["gaps"]]})

    def tuned_s(self, bandwidth_per_s: float) -> float:
        """How long the receiver was on, by the model."""
        return self.tuned_bytes / bandwidth_per_s

    def energy_j(self, profile: DeviceProfile, bandwidth_per_s: float, power_up_j: float) -> float:
        """What it used: listening, powering up, computing.

        >>> DeviceReport(tuned_bytes=500, power_ups=2, processed_s=1.0).energy_j(
        ...     DeviceProfile("d", 1e9, 0.5, 1.0), bandwidth_per_s=1000, power_up_j=0.1)
        1.2
        """
        tuning_j = self.tuned_s(bandwidth_per_s) * profile.receiving_w + self.power_ups * power_up_j
        return tuning_j + self.processed_s * profile.processing_w


def battery_lives(devices: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """By device how many seconds what is left in its battery lasts, at what it has used so far.

    A device with one battery may hear several queries, each with a report of its own. Those of
    queries that it has left count where it hears none.

    >>> used = {"device": "anna", "listening": True, "battery_j": 100.0, "running_s": 10.0}
    >>> battery_lives([{**used, "energy_j": 4.0}, {**used, "energy_j": 6.0}])
    {'anna': 90.0}
    """
    lives = {}
    for name in dict.fromkeys(device["device"] for device in devices):
        own = [device for device in devices if device["device"] == name]
        own = [device for device in own if device["listening"]] or own
        needed = ("battery_j", "energy_j", "running_s")
        told = [device for device in own if all((device.get(key) or 0) > 0 for key in needed)]
        watts = sum(device["energy_j"] / device["running_s"] for device in told)
        if watts > 0:
            left_j = told[0]["battery_j"] - sum(device["energy_j"] for device in told)
            lives[name] = max(0.0, left_j / watts)
    return lives


def touched_windows(gaps: list[Gap], windows: Mapping[str, Window]) -> dict[str, list[list[str]]]:
    """By aggregate the windows, start and end, that gaps have touched; the newest hundred."""
    found: dict[str, list[list[str]]] = {}
    for name, window in windows.items():
        starts = sorted({start for gap in gaps for start in gap.touched(window)})[-100:]
        found[name] = [
            [moment_text(start), moment_text(start + window.size_us)] for start in starts
        ]
    return found
