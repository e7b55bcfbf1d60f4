"""A join in parts on real nodes, one of them slowed and one group hot: who moves groups, and how.

The same input runs on two and on three nodes with groups that never move (hash partitioning), with
groups chosen by their load, and on three with groups chosen at random.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds

from penstock.control.answer_models import MoveAnswer
from penstock.control.client import await_that
from penstock.model.parts import GroupChoice
from penstock.studies.braking import PERIOD_S, braked
from penstock.studies.figures import Figure
from penstock.studies.live_join_input import (
    EVERY_S,
    GROUPS,
    HOT_SHARE,
    QUERY,
    WINDOW_S,
    JoinInput,
    deployment,
    measure_pair_us,
)
from penstock.studies.live_system import Delivered, LiveSystem, Watched, live_system
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    records,
    within,
)
from penstock.studies.running import one_by_one

RULES: dict[int, tuple[GroupChoice, ...]] = {2: ("off", "load"), 3: ("off", "random", "load")}
"""How groups are chosen to move, as ``moves:`` has it, by the number of nodes."""
_RATE_PER_S, _SECONDS, _LOAD = 20_000, 45, 1.0
_QUICK_RATE_PER_S, _QUICK_SECONDS, _QUICK_LOAD = 1_000, 12, 0.1
_BRAKED_SHARE = 0.7
_PATIENCE_S = 120.0


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """One run after the other: they share the machine."""
    pair_us = measure_pair_us()
    rate, seconds, load = (
        (_QUICK_RATE_PER_S, _QUICK_SECONDS, _QUICK_LOAD)
        if quick
        else (_RATE_PER_S, _SECONDS, _LOAD)
    )
    given = JoinInput.of_load([rate] * seconds, load, pair_us)
    with tempfile.TemporaryDirectory(prefix="penstock-study-") as name:
        folder = Path(name)
        given.write(folder)
        found = []
        for nodes, rules in RULES.items():
            if quick and nodes == 2:
                continue
            with live_system(nodes) as live:
                found += [_compared(live, folder, rule, given, say) for rule in rules]
    table = records("live-join", found)
    setup = _setup(given, load, pair_us)
    return StudyReport("live-join", tuple(_findings(table)), (table,), (_drawn(),), setup)


@dataclass(frozen=True)
class WatchedRun:
    """A run that was watched: ``began_s`` is when the first rows came in."""

    seen: Watched
    began_s: float
    out: Path


def watch_join(
    live: LiveSystem, name: str, text: str, out: Path, braking: bool, say: Say
) -> WatchedRun:
    """Runs a join to its end; ``braking`` says whether the node of its first part is slowed."""
    began_s = [0.0]
    with ExitStack() as brakes:

        def arrange() -> None:
            calls = live.channel("calls")
            first = await_that(calls.last, _PATIENCE_S, "no rows came in")
            began_s[0] = first.arrived_s or 0.0
            if braking:
                # The first part has the hot group.
                parts = {part.fragment: part.node for part in live.client.joins()[0].parts}
                slow = parts[f"{QUERY}_part1"]
                (pid,) = (node.pid for node in live.client.nodes() if node.name == slow)
                brakes.enter_context(braked(pid, _BRAKED_SHARE))

        seen = live.watch(name, text, [QUERY], None, say, arrange)
    return WatchedRun(seen, began_s[0], out)


def _compared(
    live: LiveSystem, folder: Path, rule: GroupChoice, given: JoinInput, say: Say
) -> dict[str, Value]:
    nodes = len(live.nodes)
    name = f"join_{nodes}_{rule}"
    out = folder / name
    text = deployment(folder, out, str(nodes), rule)
    joined = watch_join(live, name, text, out, True, say)
    rows, digest = _results(out)
    return {
        "case": f"{nodes} nodes, {rule}",
        "nodes": nodes,
        "rule": rule,
        **_figures_of(joined, given.seconds, rows),
        "rows": rows,
        "digest": digest,
    }


def _figures_of(joined: WatchedRun, seconds: int, rows: int) -> dict[str, Value]:
    """What counts from half of the time on: by then groups have had time to move."""
    half_s, end_s = joined.began_s + seconds / 2, joined.began_s + seconds
    late = [batch for batch in joined.seen.delivered if batch.at_s >= half_s]
    in_time = sum(batch.rows for batch in late if batch.at_s <= end_s)
    moves = moves_of_groups(joined.seen.moves)
    pauses = sorted(move.pause_s for move in moves if move.pause_s is not None)
    return {
        "latency_p50_s": latency_s(late, 0.5),
        "latency_p99_s": latency_s(late, 0.99),
        "pairs_per_s": round(in_time / (seconds / 2), 1),
        "of_those_due": round(in_time / (seconds / 2) / due_per_s(rows, seconds), 3),
        "unread_at_end": _unread_at(joined.seen, end_s),
        "groups_moved": sum(len(move.numbers["groups"]) for move in moves),
        "pause_p50_s": pauses[len(pauses) // 2] if pauses else None,
    }


def latency_s(batches: Iterable[Delivered], share: float) -> float | None:
    """The latency that this share of all rows did not exceed; None if there are no rows.

    >>> latency_s([Delivered("q", 1.0, 0.2, 98), Delivered("q", 9.0, 5.0, 2)], 0.99)
    5.0
    """
    ordered = sorted(batches, key=lambda batch: batch.latency_s)
    wanted = share * sum(batch.rows for batch in ordered)
    for batch in ordered:
        wanted -= batch.rows
        if wanted <= 0:
            return round(batch.latency_s, 3)
    return None


def due_per_s(rows: int, seconds: int) -> float:
    """How many pairs are due in a second, once windows are full, of all that a run gave.

    While they fill, in the first seconds, there are ever more.

    >>> due_per_s(5_500, 60)
    100.0
    """
    return max(1e-9, rows / (seconds - WINDOW_S / 2))


def _unread_at(seen: Watched, at_s: float) -> int:
    """What lay unread when the last rows had come in."""
    looks = [look for look in seen.looks if look.at_s <= at_s]
    return looks[-1].backlog_rows if looks else 0


def _results(out: Path) -> tuple[int, str]:
    """How many rows came out, and a digest of all of them in any order."""
    rows = ds.dataset(out, format="parquet", exclude_invalid_files=True).to_table(["l", "r"])
    ordered = rows.sort_by([("l", "ascending"), ("r", "ascending")])
    whole = hashlib.sha256()
    for column in ordered.columns:
        whole.update(np.ascontiguousarray(column.to_numpy()).tobytes())
    return ordered.num_rows, whole.hexdigest()[:16]


def moves_of_groups(moves: Iterable[MoveAnswer]) -> list[MoveAnswer]:
    """Those that are done, in the order in which they were."""
    done = [move for move in moves if "groups" in move.numbers and move.state == "done"]
    return sorted(done, key=lambda move: move.ended_s or 0.0)


def _findings(table: ResultTable) -> list[Row]:
    digests = len(set(table.column("digest")))
    found = [within("different results (digests)", None, digests, 1, 1)]
    for nodes in dict.fromkeys(table.column("nodes")):
        runs = {
            str(row[table.columns.index("rule")]): dict(zip(table.columns, row, strict=True))
            for row in table.where(nodes=nodes).rows
        }
        load = runs.pop("load")
        due = float(load["of_those_due"] or 0.0)
        found.append(
            within(f"{nodes} nodes, by load: pairs out over those due", None, due, low=0.9)
        )
        for rule, other in runs.items():
            against = "groups that never move" if rule == "off" else "groups at random"
            found.append(_ratio(f"{nodes} nodes, throughput", load, other, "pairs_per_s", against))
            found.append(
                _ratio(f"{nodes} nodes, latency p99", load, other, "latency_p99_s", against)
            )
    return found


def _ratio(
    what: str, load: dict[str, Value], other: dict[str, Value], column: str, against: str
) -> Row:
    ours, theirs = (float(run[column] or 0.0) for run in (load, other))
    if not theirs:
        return within(f"{what} by load; there is none with {against}", None, ours, low=0.0)
    ratio = ours / theirs
    quantity = f"{what}, by load over {against}"
    if column == "latency_p99_s":
        return within(quantity, None, round(ratio, 3), high=1.0)
    return within(quantity, None, round(ratio, 3), low=1.0)


def _drawn() -> Figure:
    return Figure(
        "live-join", "live-join", "case", "latency_p99_s", kind="dots", log_y=True,
        title="A join in parts, one node slowed, one group hot", x_label="nodes, moves",
        y_label="latency p99, s",
    )  # fmt: skip


def _setup(given: JoinInput, load: float, pair_us: float) -> str:
    return (
        "Nodes of one core on one machine, the one with the hot group stopped for "
        f"{_BRAKED_SHARE:.0%} of every {PERIOD_S:g} s. Two streams of {given.rates_per_s[0]:,} "
        f"rows a second for {given.seconds} s, joined within {WINDOW_S} s if they are near each "
        f"other; {HOT_SHARE:.0%} of the rows are of one group of {GROUPS}. A pair that meets takes "
        f"{pair_us:.3f} us here, and there are so many that all take {load:g} cores. Parts are "
        f"compared every {EVERY_S} s; figures are of the second half."
    )
