"""Amounts of memory as people write them."""

from __future__ import annotations

import re

from penstock.errors import InputError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def memory_bytes(written: str | int) -> int:
    """Bytes of an amount of memory; the units are powers of 1024.

    >>> memory_bytes("512m"), memory_bytes("1.5 GiB")
    (536870912, 1610612736)
    """
    found = _WRITTEN.fullmatch(str(written).strip())
    if found and not found.group(2) and 0 < float(found.group(1)) < _UNITS["m"]:
        number = found.group(1)
        raise InputError(
            f"an amount of memory of {number} has no unit",
            hint=f"Did you mean {number}g, or {number}m?",
        )
    size = round(float(found.group(1)) * _UNITS[found.group(2).lower()]) if found else 0
    if not size:
        raise InputError(
            f"{written!r} is not an amount of memory", hint="Write for example 512m or 2g."
        )
    return size


def memory_text(size: int) -> str:
    """The shortest exact way to write ``size`` bytes; parses back.

    >>> memory_text(1 << 30), memory_text(1536 << 20), memory_text((1 << 30) + 1)
    ('1g', '1536m', '1073741825')
    """
    for unit in ("t", "g", "m", "k"):
        if size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)
