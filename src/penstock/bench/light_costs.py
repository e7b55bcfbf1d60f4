"""What rounds of a bundle cost: in themselves, for each member, each row, each row of a member."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.bench.sub_process import run_module
from penstock.load.costs import LIGHT, LIGHT_READING, LIGHT_ROUND

_FEW, _MANY = (1, 500), (40, 20_000)


@dataclass(frozen=True)
class LightRound:
    """A round that was measured: members, rows, milliseconds of processor time."""

    members: int
    rows: int
    ms: float


@dataclass(frozen=True)
class LightCosts:
    """Milliseconds of a round and of a member in it, microseconds of a row and for a member."""

    round_ms: float
    member_ms: float
    reading_us: float
    row_us: float

    @property
    def batch_ms(self) -> dict[str, float]:
        """By the kinds of the table of costs."""
        return {LIGHT_ROUND: self.round_ms, LIGHT: self.member_ms}

    @property
    def cost_us(self) -> dict[str, float]:
        """By the kinds of the table of costs."""
        return {LIGHT_READING: self.reading_us, LIGHT: self.row_us}


def measure_light(quick: bool, say: Callable[[str], None]) -> LightCosts:
    """Rounds with few and many members and rows."""
    warm_up, measured = (6, 4) if quick else (40, 20)
    found = []
    for members in (_FEW[0], _MANY[0]):
        for rows in (_FEW[1], _MANY[1]):
            say(f"light, {members} members, {rows:,} rows a round")
            given = (str(members), str(rows), str(warm_up), str(measured))
            with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
                answer = run_module("penstock.bench.light_rounds", *given, folder)
            found.append(LightRound(members, rows, answer["ms"]))
    return fit_costs(found)


def fit_costs(rounds: Sequence[LightRound]) -> LightCosts:
    """The costs that explain the rounds best; none is below zero.

    >>> fit_costs([LightRound(m, r, 50 + 2 * m + 0.001 * r + 0.0002 * m * r)
    ...            for m in (1, 40) for r in (500, 20_000)])
    LightCosts(round_ms=50.0, member_ms=2.0, reading_us=1.0, row_us=0.2)
    """
    from scipy.optimize import nnls

    terms = np.array([[1.0, r.members, r.rows / 1e3, r.members * r.rows / 1e3] for r in rounds])
    taken_ms = np.array([r.ms for r in rounds])
    # Every round counts for as much, as a part of what it took.
    found, _ = nnls(terms / taken_ms[:, np.newaxis], np.ones(len(rounds)))
    round_ms, member_ms, reading_us, row_us = (round(float(cost), 6) for cost in found)
    return LightCosts(round_ms, member_ms, reading_us, row_us)
