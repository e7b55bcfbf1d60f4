"""How long a fragment is silent when it moves: ours between two nodes, stock's stop and start."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from penstock.bench.report import BenchCase, Report, compared
from penstock.channels.channel import Channel
from penstock.errors import RunError
from penstock.studies.live_system import READER, LiveSystem, live_system

_SIZES = {1_000: 1.0, 50_000: 2.0, 200_000: 2.0}
"""Rows of state, and the seconds a move may take."""

_ROUND_S, _QUICK_ROUND_S = 30, 10
_REST_S = 2.0
_MEMORY_BYTES = 3 << 30
"""Of each of two nodes; the stock side has a heap of 6 GiB."""
_LOOK_EVERY_S = 0.05
Say = Callable[[str], None]


def handover(quick: bool, say: Say) -> Report:
    """The gap between the last result before a move and the first after it."""
    moves = 2 if quick else 20
    round_s = _QUICK_ROUND_S if quick else _ROUND_S
    sizes = list(_SIZES)[:1] if quick else list(_SIZES)
    cases: list[BenchCase] = []
    for keys in sizes:
        say(f"stock Spark, {keys:,} keys…")
        stock = _stock_gaps(keys, moves, round_s)
        say(f"between nodes, {keys:,} keys…")
        ours = _our_gaps(keys, moves, round_s)
        say(f"p50 {statistics.median(ours):.2f} s, stock {statistics.median(stock):.2f} s")
        cases += _compared(keys, ours, stock)
    return Report("handover", tuple(cases))


def _compared(keys: int, ours: list[float], stock: list[float]) -> Iterator[BenchCase]:
    for name, of in (("p50", statistics.median), ("p99", max)):
        case = compared(f"{keys:,} keys, pause {name}", of(ours), "s", of(stock), at_most=0.5)
        limit_s = _SIZES[keys]
        within = case.value <= limit_s
        yield BenchCase(
            case.case,
            round(case.value, 3),
            "s",
            round(of(stock), 3),
            round(case.ratio or 0.0, 3),
            f"<= {limit_s:g} s and <= 0.5 of stock",
            case.ok and within,
        )


def _stock_gaps(keys: int, moves: int, round_s: int) -> list[float]:
    given = [str(number) for number in (keys, moves, round_s)]
    command = [sys.executable, "-m", "penstock.bench.peers.stock_handover", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError("the stock side of the benchmark died", hint=done.stderr[-2_000:])
    gaps: list[float] = json.loads(done.stdout)["gaps_s"]
    return gaps


def _deployment(keys: int, round_s: int) -> str:
    # Homes report in turn, so sessions end all the time and every batch has results.
    return f"""
streams:
  readings:
    source: {{generate: meters, homes: {keys}, every: 30min, speedup: {30 * 60 // round_s}}}
    lateness: 1min
queries:
  sessions:
    sql: |
      SELECT home, session_window.start AS since, sum(kwh) AS kwh, count(*) AS n
      FROM readings GROUP BY home, session_window(ts, '20 minutes')
"""


def _our_gaps(keys: int, moves: int, round_s: int) -> list[float]:
    with live_system(2, _MEMORY_BYTES) as live:
        results = _Results(live.channel("sessions"))
        live.client.submit("bench", "yaml", _deployment(keys, round_s), str(live.home.path))
        time.sleep(round_s)
        results.await_owner(0)
        return [_moved(live, results, k) for k in range(moves)]


class _Results:
    """When batches with results became visible, by owner; what was looked at is freed."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._next = channel.oldest()
        self._seen: list[tuple[float, int]] = []

    def await_owner(self, epoch: int) -> None:
        """Waits until an owner with this epoch or a later one has had results."""
        until_s = time.monotonic() + 120
        while not any(by >= epoch for _, by in self._look()):
            if time.monotonic() > until_s:
                raise RunError("no results came within two minutes", hint="Look at the node's log.")
            time.sleep(_LOOK_EVERY_S)

    def gap_s(self, epoch: int) -> float:
        """From the last result of owners before to the first of this one."""
        last_s = max(at for at, by in self._seen if by < epoch)
        return min(at for at, by in self._seen if by == epoch) - last_s

    def _look(self) -> list[tuple[float, int]]:
        for manifest in self._channel.newer(self._next):
            self._next = manifest.sequence + 1
            if manifest.rows:
                at_s = self._channel.entry(manifest.sequence).stat().st_mtime
                self._seen.append((at_s, manifest.epoch))
        self._channel.advance(READER, self._next)
        return self._seen


def _moved(live: LiveSystem, results: _Results, k: int) -> float:
    time.sleep(_REST_S)
    unit = next(fragment for fragment in live.client.fragments() if fragment.name == "sessions")
    target = next(node for node in live.nodes if node != unit.node)
    done = live.client.await_move(live.client.move("sessions", target).id)
    if done.state != "done":
        raise RunError(f"move {k} failed: {done.error}")
    epoch = unit.epoch + 1
    results.await_owner(epoch)
    return results.gap_s(epoch)
