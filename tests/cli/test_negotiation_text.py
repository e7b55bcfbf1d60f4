"""Negotiations as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.cli.negotiation_text import negotiation_lines
from penstock.control.answer_models import NegotiationAnswer, NegotiationPart


def part(node: str, **told: Any) -> NegotiationPart:
    nothing: dict[str, Any] = {"offered": [], "agreed": [], "chosen": [], "moved": [], "size": 0.0}
    return NegotiationPart(
        **{"node": node, "answer": "answered", "urgency": "Normal", "why": "", **nothing, **told}
    )


def lines(kind: str, utilisation: float, *parts: NegotiationPart) -> list[str]:
    told = NegotiationAnswer(
        name="a#1.2", node="a", kind=kind, at_s=0.0, utilisation=utilisation, lower=40.0,
        upper=60.0, peers=[*parts], text="",
    )  # fmt: skip
    first, *others = negotiation_lines(told)
    return [first.partition("  ")[2], *(line.strip() for line in others)]


@pytest.mark.parametrize(
    ("kind", "utilisation", "why"),
    [
        ("offer", 75.0, "above 60 %: offers what it has too much"),
        ("offer", 55.0, "had no room for what it was offered: makes some"),
        ("demand", 12.0, "below 40 %: asks for load"),
    ],
)
def test_why_a_negotiation_began(kind: str, utilisation: float, why: str) -> None:
    assert lines(kind, utilisation) == [f"a#1.2  a at {utilisation:.0f} %, {why}"]


def test_what_became_of_an_offer() -> None:
    took = part(
        "root", offered=[(["f", "g"], 15.0), (["h"], 4.0)], agreed=[(["f", "g"], 15.0)],
        moved=["f", "g"], why="fitted",
    )  # fmt: skip
    busy = part("c", offered=[(["h"], 4.0)], answer="busy", why="it was in another negotiation")
    _, *others = lines("offer", 75.0, took, busy)
    assert others == [
        "root: offered f+g (15.0 %), h (4.0 %); would take f+g (15.0 %); took f, g: fitted",
        "c: offered h (4.0 %); busy; took nothing: it was in another negotiation",
    ]


def test_what_became_of_a_demand() -> None:
    many = [([f"f{at}"], 1.0) for at in range(7)]
    _, told = lines("demand", 10.0, part("root", size=40.0, agreed=many, why="it came too late"))
    shown = ", ".join(f"f{at} (1.0 %)" for at in range(5))
    assert told == (
        f"root: asked for 40.0 %; could give {shown} and 2 more; gave nothing: it came too late"
    )
