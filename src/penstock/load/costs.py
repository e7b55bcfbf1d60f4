"""What one row costs each kind of operator, as measured on a real engine.

The table lies beside this file as ``costs.json`` and is written by ``penstock bench costs`` and
``bench hop`` with the machine and the date; nothing in it is guessed. Measured costs of a running
deployment take precedence where they exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

READING = "reading"
"""The kind that stands for what a fragment needs to read a row."""

TRANSFER = "transfer"
"""The kind that stands for what a row costs more when its reader is on another node."""


@dataclass(frozen=True)
class CostTable:
    """Microseconds of processor time per input row by kind of operator, and where they come from.

    A sliding window puts a row into several groups: its cost is per row and group.
    """

    cost_us: Mapping[str, float]
    machine: str
    date: str

    def of(self, kind: str) -> float | None:
        """The cost of a kind of operator; None where none was measured."""
        return self.cost_us.get(kind)


@lru_cache
def measured_costs() -> CostTable:
    """The table that came with this version."""
    text = (files("penstock.load") / "costs.json").read_text(encoding="utf-8")
    return CostTable(**json.loads(text))
