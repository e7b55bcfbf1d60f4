"""When to cut anew: only for a gain that is worth it, and that lasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Ints
from penstock.power.bose import bose
from penstock.power.cuts import CutTable, cut_table
from penstock.power.energy import energy_of
from penstock.power.problem import PowerProblem

LEAST_GAIN = 0.1
LOOKS = 2


@dataclass(frozen=True)
class Drift:
    """How often in a row other cuts have been found better, and by how much the last time."""

    looks: int = 0
    gain: float = 0.0


@dataclass(frozen=True)
class DriftVerdict:
    """What is known after a look: other cuts if it is time for them, and what to remember."""

    drift: Drift
    cuts: Mapping[str, int] | None = None


def watch_drift(problem: PowerProblem, cuts: Mapping[str, int], drift: Drift) -> DriftVerdict:
    """Compares the present cuts with those that BOSe would make of what is measured now.

    Other cuts are taken once they save a tenth in two looks in a row: a single odd sample, or a
    gain that the switch would eat up, changes nothing.
    """
    table = cut_table(problem)
    present = entries_of(table, cuts)
    if present is None:
        return DriftVerdict(Drift())
    better = bose(table)
    now_j, then_j = (energy_of(table, entries).total_j for entries in (present, better))
    gain = 1 - then_j / now_j if now_j > 0 else 0.0
    if gain < LEAST_GAIN:
        return DriftVerdict(Drift())
    seen = Drift(drift.looks + 1, gain)
    if seen.looks < LOOKS:
        return DriftVerdict(seen)
    numbers = table.cut_numbers(better).tolist()
    return DriftVerdict(Drift(), dict(zip(table.names, numbers, strict=True)))


def entries_of(table: CutTable, cuts: Mapping[str, int]) -> Ints | None:
    """The entries of these cuts; None where one of them is not allowed."""
    offsets = np.array([cuts[name] for name in table.names]) - table.first
    if (offsets < 0).any() or (offsets >= np.diff(table.starts)).any():
        return None
    entries: Ints = table.starts[:-1] + offsets
    return entries
