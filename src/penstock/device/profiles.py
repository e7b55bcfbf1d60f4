"""The profile of a device: what it says of itself, and what the deployment says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import InputError
from penstock.model.devices import DeviceProfile

_USUAL = {"speed_per_s": 1e9, "processing_w": 0.16, "receiving_w": 1.0}
_FIELDS = (*_USUAL, "battery_j")


def merge_profile(
    name: str, said: Mapping[str, Any], known: DeviceProfile | None = None
) -> DeviceProfile:
    """What a device says counts, then what is ``known`` of it, then what is usual.

    >>> known = DeviceProfile("anna", 1e9, 0.5, 1.0)
    >>> list(merge_profile("anna", {"speed_per_s": 2e9}, known).to_record().values())
    [2000000000.0, 0.5, 1.0]
    """
    written = _USUAL if known is None else known.to_record()
    try:
        own = {key: float(said[key]) for key in _FIELDS if said.get(key) is not None}
    except (TypeError, ValueError):
        raise InputError(
            f"device {name} has the profile {dict(said)}",
            hint="Give speed, processing_power, receiving_power and battery as numbers.",
        ) from None
    return DeviceProfile(name, **{**written, **own})
