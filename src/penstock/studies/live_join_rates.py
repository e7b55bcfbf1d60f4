"""A join in parts on real nodes whose rate rises and falls: it has as many parts as it needs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from penstock.control.answer_models import MoveAnswer
from penstock.model.parts import JoinSpread, first_owners
from penstock.studies.figures import Figure
from penstock.studies.live_join import moves_of_groups, watch_join
from penstock.studies.live_join_input import (
    EVERY_S,
    GROUPS,
    WINDOW_S,
    JoinInput,
    deployment,
    measure_pair_us,
)
from penstock.studies.live_system import live_system
from penstock.studies.report import ResultTable, Row, Runner, Say, StudyReport, records, within
from penstock.studies.running import one_by_one

_NODES = 3
_PHASES = ((4_000, 45), (24_000, 60), (4_000, 45))
_QUICK_PHASES = ((1_000, 8), (4_000, 8), (1_000, 8))
_LOAD, _QUICK_LOAD = 1.44, 0.2


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """How many parts have groups, second by second."""
    phases, load = (_QUICK_PHASES, _QUICK_LOAD) if quick else (_PHASES, _LOAD)
    rates = [rate for rate, seconds in phases for _ in range(seconds)]
    pair_us = measure_pair_us()
    given = JoinInput.of_load(rates, load, pair_us)
    with tempfile.TemporaryDirectory(prefix="penstock-study-") as name, live_system(_NODES) as live:
        folder, out = Path(name), Path(name) / "join_auto"
        given.write(folder)
        text = deployment(folder, out, "auto", "load")
        joined = watch_join(live, "join_auto", text, out, False, say)
    changes = degrees(JoinSpread(None, GROUPS), joined.seen.moves)
    table = _by_second(rates, changes, joined.began_s)
    findings = _findings(table, phases[0][1], phases[0][1] + phases[1][1])
    written = ", ".join(f"{rate:,}/s for {seconds} s" for rate, seconds in phases)
    setup = (
        f"{_NODES} nodes of one core on one machine. Two streams of {written}, joined within "
        f"{WINDOW_S} s if they are near each other. A pair that meets takes {pair_us:.3f} us here, "
        f"and there are so many that at the high rate all take {load:g} cores. Parts are compared "
        f"every {EVERY_S} s."
    )
    return StudyReport("live-join-rates", tuple(findings), (table,), (_drawn(),), setup)


def _by_second(rates: list[int], changes: list[tuple[float, int]], began_s: float) -> ResultTable:
    found = []
    for second, rate in enumerate(rates):
        parts = [degree for since_s, degree in changes if since_s <= began_s + second][-1]
        found.append({"second": second, "rate_per_s": rate, "parts": parts})
    return records("live-join-rates", found)


def degrees(spread: JoinSpread, moves: Iterable[MoveAnswer]) -> list[tuple[float, int]]:
    """Since when a join had how many parts with groups."""
    owners = list(first_owners(spread))
    found = [(0.0, len(set(owners)))]
    for move in moves_of_groups(moves):
        for group in move.numbers["groups"]:
            owners[group] = move.numbers["part"]
        found.append((move.ended_s or 0.0, len(set(owners))))
    return found


def _findings(table: ResultTable, before: int, after: int) -> list[Row]:
    parts = [int(value) for value in table.column("parts") if isinstance(value, int)]
    low, high, again = min(parts[:before]), max(parts[before:after]), min(parts[after:])
    return [
        within("parts with groups, most at the high rate less least before", None, high - low,
               low=1, note="a part is added when the rate rises"),
        within("parts with groups, most at the high rate less least after", None, high - again,
               low=1, note="and released when it falls"),
    ]  # fmt: skip


def _drawn() -> Figure:
    return Figure(
        "live-join-rates", "live-join-rates", "second", "parts",
        title="Parts with groups while the rate rises and falls", x_label="s",
        y_label="parts with groups",
    )  # fmt: skip
