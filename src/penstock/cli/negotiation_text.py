"""Negotiations as text: who offered what to whom, and why it was taken or not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.control.answer_models import NegotiationAnswer, NegotiationPart

Shown = Sequence[tuple[list[str], float]]


def negotiation_lines(told: NegotiationAnswer) -> Iterator[str]:
    """A negotiation: who began it and why, and a line for every neighbour."""
    clock = time.strftime("%H:%M:%S", time.localtime(told.at_s))
    yield f"{clock}  {told.name}  {told.node} at {told.utilisation:.0f} %, {_why(told)}"
    for part in told.peers:
        yield f"    {part.node}: {_part(told, part)}"


def _why(told: NegotiationAnswer) -> str:
    if told.kind == "demand":
        return f"below {told.lower:g} %: asks for load"
    if told.utilisation > told.upper:
        return f"above {told.upper:g} %: offers what it has too much"
    return "had no room for what it was offered: makes some"


def _part(told: NegotiationAnswer, part: NegotiationPart) -> str:
    said = []
    if told.kind == "offer":
        said.append(f"offered {_transfers(part.offered)}")
        said.append(f"would take {_transfers(part.agreed)}")
    else:
        said.append(f"asked for {part.size:.1f} %")
        said.append(f"could give {_transfers(part.agreed)}")
    if part.answer != "answered":
        said[1:] = [part.answer]
    verb = "took" if told.kind == "offer" else "gave"
    outcome = f"{verb} {', '.join(part.moved)}" if part.moved else f"{verb} nothing"
    return f"{'; '.join(said)}; {outcome}: {part.why}"


def _transfers(shown: Shown) -> str:
    if not shown:
        return "nothing"
    found = [f"{'+'.join(units)} ({size:.1f} %)" for units, size in shown[:5]]
    return ", ".join(found) + (f" and {len(shown) - 5} more" if shown[5:] else "")
