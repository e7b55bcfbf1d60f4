"""How long a fragment is silent when it moves: ours between two nodes, stock's stop and start."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.bench.report import Case, Report, compared
from penstock.control.client import Client
from penstock.control.home import Home
from penstock.control.launch import bring_down, bring_up
from penstock.errors import RunError
from penstock.model.network import NodeSpec
from penstock.spark.channels.channel import Channel

_SIZES = {1_000: 1.0, 50_000: 2.0, 200_000: 2.0}
"""Rows of state, and the seconds a move may take."""

_ROUND_S, _QUICK_ROUND_S = 30, 10
_REST_S = 2.0
_LOOK_EVERY_S = 0.05
Say = Callable[[str], None]


def handover(quick: bool, say: Say) -> Report:
    """The gap between the last result before a move and the first after it."""
    moves = 2 if quick else 20
    round_s = _QUICK_ROUND_S if quick else _ROUND_S
    sizes = list(_SIZES)[:1] if quick else list(_SIZES)
    cases: list[Case] = []
    for keys in sizes:
        say(f"stock Spark, {keys:,} keys…")
        stock = _stock_gaps(keys, moves, round_s)
        say(f"between nodes, {keys:,} keys…")
        cases += _compared(keys, _our_gaps(keys, moves, round_s), stock)
    return Report("handover", tuple(cases))


def _compared(keys: int, ours: list[float], stock: list[float]) -> Iterator[Case]:
    for name, of in (("p50", statistics.median), ("p99", max)):
        case = compared(f"{keys:,} keys, pause {name}", of(ours), "s", of(stock), at_most=0.5)
        limit_s = _SIZES[keys]
        within = case.value <= limit_s
        yield Case(
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
    command = [sys.executable, "-m", "penstock.spark.peers.stock_handover", *given]
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


@contextmanager
def _two_nodes(folder: Path) -> Iterator[tuple[Client, Home]]:
    home = Home(folder / "home")
    nodes = [NodeSpec(name, 1, 2 << 30) for name in ("a", "b")]
    client = bring_up(home, nodes)
    try:
        yield client, home
    finally:
        client.close()
        bring_down(home)


def _our_gaps(keys: int, moves: int, round_s: int) -> list[float]:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as name,
        _two_nodes(Path(name)) as (client, home),
    ):
        client.submit("bench", "yaml", _deployment(keys, round_s), name)
        channel = Channel.open(home.state / "channels" / "sessions")
        channel.register("bench")
        time.sleep(round_s)
        _await_results(channel, 0)
        return [_moved(client, channel, k) for k in range(moves)]


def _moved(client: Client, channel: Channel, k: int) -> float:
    time.sleep(_REST_S)
    unit = next(one for one in client.get("/api/fragments") if one["name"] == "sessions")
    target = "b" if unit["node"] == "a" else "a"
    done = client.await_move(client.move("sessions", target)["id"])
    if done["state"] != "done":
        raise RunError(f"move {k} failed: {done['error']}")
    epoch = unit["epoch"] + 1
    _await_results(channel, epoch)
    times = _result_times(channel)
    return min(at for at, by in times if by == epoch) - max(at for at, by in times if by < epoch)


def _await_results(channel: Channel, epoch: int) -> None:
    until_s = time.monotonic() + 120
    while not any(by >= epoch for _, by in _result_times(channel)):
        if time.monotonic() > until_s:
            raise RunError("no results came within two minutes", hint="Look at the node's log.")
        time.sleep(_LOOK_EVERY_S)


def _result_times(channel: Channel) -> list[tuple[float, int]]:
    """When each batch with results became visible, and by which owner."""
    found = []
    for manifest in channel.newer(channel.oldest()):
        if manifest.rows:
            at = channel.entry(manifest.sequence).stat().st_mtime
            found.append((at, manifest.epoch))
    return found
