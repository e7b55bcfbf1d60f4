"""Whether a node that works for a while comes to rest: memory, open files, bytes on disk."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.bench.processes import processor_s, resident_bytes, total
from penstock.bench.report import BenchCase, Report, compared, limited
from penstock.channels.channel import Channel
from penstock.channels.layout import StateLayout
from penstock.studies.live_system import READER, LiveSystem, live_system

Say = Callable[[str], None]

_LOOK_EVERY_S = 5.0
_GROWTH_AT_MOST = 1.1
_IDLE_GIB, _IDLE_CPU = 1.0, 0.03
# Nobody reads what *talkers* gives, so that the limit of what is kept is reached within minutes;
# *answered* is read and freed.
_DEPLOYMENT = """
streams:
  packets:
    source: {generate: packets, rate: 2000, hosts: 200, speedup: 1}
    lateness: 1s
  replies:
    source: {generate: packets, rate: 500, hosts: 200, speedup: 1}
    lateness: 1s
queries:
  talkers:
    sql: |
      SELECT src, window.end AS at, count(*) AS n
      FROM packets GROUP BY src, window(ts, '10 seconds', '500 milliseconds')
    max_latency: 4s
  answered:
    sql: |
      SELECT p.ts AS ts, p.src AS src, p.dst AS dst
      FROM packets p JOIN replies r
      ON p.src = r.dst AND p.dst = r.src AND r.ts BETWEEN p.ts AND p.ts + INTERVAL '1 second'
    max_latency: 4s
"""


@dataclass(frozen=True)
class Holding:
    """What a node has at one moment."""

    memory_bytes: float
    open_files: float
    channel_bytes: float
    checkpoint_bytes: float


def steadiness(quick: bool, say: Say) -> Report:
    """What an idle node uses, and how much more a busy one has after a while than soon."""
    idle_s, busy_s = (10.0, 40.0) if quick else (60.0, 20 * 60.0)
    with live_system(1) as live:
        say("an idle node")
        idle = list(_idle(live, idle_s))
        live.client.submit("steady", "yaml", _DEPLOYMENT, ".")
        looks = list(_looks(live, busy_s, say))
    return Report("steadiness", (*idle, *grown(looks)))


def grown(looks: list[Holding]) -> Iterator[BenchCase]:
    """The mean of every quantity over the last quarter beside that over the second."""
    quarter = len(looks) // 4
    early, late = looks[quarter : 2 * quarter], looks[-quarter:]
    for name in asdict(looks[0]):
        before, after = (
            statistics.fmean(getattr(sample, name) for sample in part) for part in (early, late)
        )
        unit = "files" if name == "open_files" else "MiB"
        size = 1 if name == "open_files" else 1 << 20
        yield compared(
            f"{name.removesuffix('_bytes').replace('_', ' ')}, last quarter over second",
            after / size,
            unit,
            before / size,
            at_most=_GROWTH_AT_MOST,
        )


def _idle(live: LiveSystem, seconds: float) -> Iterator[BenchCase]:
    # What starting left to do is done by then.
    time.sleep(seconds)
    pid = _pid(live)
    before_s, began_s = total(pid, processor_s), time.monotonic()
    time.sleep(seconds)
    share = (total(pid, processor_s) - before_s) / (time.monotonic() - began_s)
    resident = total(pid, resident_bytes)
    yield limited("idle node, memory of all its processes", resident / (1 << 30), "GiB", _IDLE_GIB)
    yield limited("idle node, processor", share, "cores", _IDLE_CPU)


def _looks(live: LiveSystem, seconds: float, say: Say) -> Iterator[Holding]:
    until_s = time.monotonic() + seconds
    answered = live.channel("answered")
    while time.monotonic() < until_s:
        time.sleep(_LOOK_EVERY_S)
        live.check()
        _read(answered)
        look = _look(live)
        say(f"{until_s - time.monotonic():.0f} s left: {look}")
        yield look


def _read(channel: Channel) -> None:
    newest = channel.last()
    if newest is not None:
        channel.advance(READER, newest.sequence + 1)


def _look(live: LiveSystem) -> Holding:
    pid, state = _pid(live), live.home.state
    return Holding(
        total(pid, resident_bytes),
        total(pid, lambda process: process.num_fds()),
        _bytes(StateLayout(state).channels),
        _bytes(StateLayout(state).fragments),
    )


def _pid(live: LiveSystem) -> int:
    (node,) = live.client.nodes()
    return node.pid


def _bytes(folder: Path) -> int:
    """What the files below a folder hold; some may go while they are counted."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total
