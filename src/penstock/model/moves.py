"""A move: what is to run on another node, whoever wants that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Move:
    """A unit is to run on another node, and why.

    ``numbers`` are what the decision rests on, if somebody has computed it.
    """

    unit: str
    target: str
    reason: str = "asked for"
    numbers: Mapping[str, object] | None = None
