"""Broadcasts and devices for people: cuts, airtime, energy, how long batteries last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.app.words import counted, span
from penstock.cli.power_text import joules, life_text, octets


def device_lines(stations: Sequence[dict[str, Any]]) -> list[str]:
    """A few lines for every station: what is on the air, and who listens.

    >>> device_lines([])
    ['no deployment with devices is running']
    """
    if not stations:
        return ["no deployment with devices is running"]
    return [line for station in stations for line in _station(station)]


def _station(station: dict[str, Any]) -> list[str]:
    share = 100 * station["airtime_s"] / station["cycle_s"]
    overloaded = ", OVERLOADED" if station["overloaded"] else ""
    lines = [
        f"{station['deployment']}: {station['organisation']} broadcast at "
        f"127.0.0.1:{station['port']}, cycle {station['cycle']:,}, on the air {share:.1f} % of the "
        f"time{overloaded}"
    ]
    lines += [_query(name, query) for name, query in station["queries"].items()]
    lines += map(_device, station["devices"])
    lives = sorted(station["batteries"].items(), key=lambda pair: pair[1])
    if lives:
        texts = ", ".join(f"{name} {life_text(life_s)}" for name, life_s in lives)
        lines.append(f"  batteries last: {texts}")
    return lines


def _query(name: str, query: dict[str, Any]) -> str:
    ships = ", ".join(query["ships"]) or "nothing"
    switching = "; about to be cut elsewhere" if query["switches"] else ""
    return (
        f"  {name}: cut {query['cut']} of {query['operators']}, ships {ships}; "
        f"{query['listeners']} listening, {counted(query['rows'], 'row')}, "
        f"{octets(query['bytes'])}{switching}"
    )


def _device(device: dict[str, Any]) -> str:
    does = "hears" if device["listening"] else "has heard"
    parts = [f"  {device['device']} {does} {device['query']}"]
    if device.get("energy_j") is not None:
        parts.append(use_text(device))
    if device.get("missed_cycles"):
        parts.append(f"missed {counted(device['missed_cycles'], 'cycle')}")
    return "; ".join(parts)


def use_text(used: dict[str, Any]) -> str:
    """What a device has used.

    >>> use_text({"tuned_s": 2.5, "processed_s": 0.0123, "energy_j": 2.506})
    'tuned 2.5 s, computed 12 ms, 2.51 J'
    """
    return (
        f"tuned {_seconds(used['tuned_s'])}, computed {_seconds(used['processed_s'])}, "
        f"{joules(used['energy_j'])}"
    )


def _seconds(seconds: float) -> str:
    return span(seconds) if seconds >= 0.95 else f"{1e3 * seconds:.0f} ms"
