"""Inputs that have ended and of which nothing could be read: what was made of them is no result."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.control.answer_models import SetAsideAnswer
from penstock.control.system import System
from penstock.errors import listed


def unreadable_units(system: System, set_aside: Sequence[SetAsideAnswer]) -> dict[str, str]:
    """The units that can have no true result, each with the reason.

    ``set_aside`` is what could not be used of each stream.
    """
    found = {told.stream: told.text for told in set_aside if told.nothing_read}
    inputs = set(found)
    # Units come after those that they read.
    for unit in system.units.values() if found else ():
        read = [*unit.reads, *([] if unit.again is None else [unit.again.stream])]
        unread = sorted({stream for stream in read if stream in found})
        if unread and unit.name not in inputs:
            found[unit.gives] = found[unit.name] = f"nothing could be read of {listed(unread)}"
    return found
