"""Broadcasts and devices for people: cuts, airtime, energy, how long batteries last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def device_lines(stations: Sequence[dict[str, Any]]) -> list[str]:
    """A few lines for every station: what is on the air, and who listens.

    >>> device_lines([])
    ['no deployment with devices is running']
    """
    if not stations:
        return ["no deployment with devices is running"]
    return [line for station in stations for line in _station(station)]


def _station(station: dict[str, Any]) -> list[str]:
    share = station["airtime_s"] / station["cycle_s"]
    lines = [
        f"{station['deployment']}: {station['organisation']} broadcast at "
        f"127.0.0.1:{station['port']}, cycle {station['cycle']}, on the air {share:.1%} of the time"
        + (", OVERLOADED" if station["overloaded"] else "")
    ]
    for name, query in station["queries"].items():
        ships = ", ".join(query["ships"]) or "nothing"
        switching = "; about to be cut elsewhere" if query["switches"] else ""
        lines.append(
            f"  {name}: cut {query['cut']} of {query['operators']}, ships {ships}; "
            f"{query['listeners']} listening, {query['rows']} rows, {query['bytes']} bytes"
            f"{switching}"
        )
    return [*lines, *map(_device, station["devices"])]


def _device(device: dict[str, Any]) -> str:
    energy, battery = device.get("energy_j"), device.get("battery_s")
    does = "hears" if device["listening"] else "has heard"
    parts = [f"  {device['device']} {does} {device['query']}"]
    if energy is not None:
        parts.append(
            f"tuned {device['tuned_s']:.2f} s, computed {device['processed_s']:.2f} s, "
            f"{energy:.3g} J"
        )
    if battery is not None:
        parts.append(f"battery for {battery / 3600:.1f} h")
    if device.get("missed_cycles"):
        parts.append(f"missed {device['missed_cycles']} cycles")
    return "; ".join(parts)
