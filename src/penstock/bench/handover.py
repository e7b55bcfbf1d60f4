"""How long a fragment is silent when it moves between two nodes, by its state and their load.

Beside ours stands stock Spark's way to move a query, to stop it and to start it from its checkpoint
in a warm session, with as many rows of state.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from penstock.bench.flow import flowing, longest_gap_s
from penstock.bench.handover_load import BESIDE, MOVED, NODES, Burden, Readings, deployment
from penstock.bench.report import BenchCase, Report, chosen_cases, compared, limited
from penstock.channels.channel import Channel
from penstock.control.answer_models import Unmeasured
from penstock.control.client import await_that
from penstock.errors import RunError
from penstock.studies.live_system import LiveSystem, live_system

Say = Callable[[str], None]
_SIZES = (1_000, 50_000, 200_000, 2_000_000)
_LOADS: Mapping[str, float | None] = {"idle": None, "80 % busy": 0.8}
_WHOLE_S, _P50_S, _P99_S, _OTHERS_FACTOR = 1.0, 0.2, 0.5, 1.5
_GOALS_UP_TO = 200_000
_MOVES, _QUICK_MOVES = 20, 2
_STOCK_ROUND_S, _QUICK_STOCK_ROUND_S = 30, 10
_MEMORY_BYTES = 3 << 30
_REST_S, _PATIENCE_S = 1.5, 300.0
_STEER_EVERY_S, _STEERED_S = 2.0, 90.0


def handover(quick: bool, say: Say, only: str = "") -> Report:
    """Moves there and back, on idle nodes and on busy ones."""
    moves = _QUICK_MOVES if quick else _MOVES
    loads, sizes = (("idle",), _SIZES[:1]) if quick else (tuple(_LOADS), _SIZES)
    named = {f"{load}, {size:,} rows": (load, size) for load in loads for size in sizes}
    cases: list[BenchCase] = []
    for load, sessions in chosen_cases(named, only):
        case = f"{load}, {sessions:,} rows"
        say(f"{case}: a system of two nodes")
        seen = _watched(sessions, moves, _LOADS[load], say)
        cases += ours_of(case, sessions, seen)
        if load == "idle" and sessions <= _GOALS_UP_TO:
            say(f"{case}: stock Spark")
            cases.append(_beside_stock(case, sessions, seen, moves, quick))
    return Report("handover", tuple(cases))


@dataclass(frozen=True)
class SeenMove:
    """A move as it was told, and the epoch of the owner that it made."""

    began_s: float
    ended_s: float
    pause_s: float | None
    epoch: int


@dataclass(frozen=True)
class MovesSeen:
    """When results came out: of what moved, with its owner's epoch, and of what stayed."""

    moves: Sequence[SeenMove]
    moved: Sequence[tuple[float, int]]
    beside: Sequence[Sequence[float]]

    def silence_s(self, move: SeenMove) -> float:
        """From the last result of the owner before to the first of the new one."""
        last_s = max(at_s for at_s, epoch in self.moved if epoch < move.epoch)
        return min(at_s for at_s, epoch in self.moved if epoch >= move.epoch) - last_s

    def usual_s(self) -> float:
        """The time between two results of one owner; the median."""
        pairs = pairwise(self.moved)
        return statistics.median(
            later_s - at_s for (at_s, epoch), (later_s, next_epoch) in pairs if epoch == next_epoch
        )

    def beside_s(self, began_s: float, ended_s: float) -> float:
        """The longest that a query beside it gave nothing."""
        return max(longest_gap_s(times, began_s, ended_s) for times in self.beside)

    def beside_resting_s(self) -> list[float]:
        """The same for stretches without a move, each as long as the move before it."""
        found = []
        for move in self.moves:
            began_s = move.ended_s + _REST_S / 2
            found.append(self.beside_s(began_s, began_s + move.ended_s - move.began_s))
        return found


def ours_of(named: str, sessions: int, seen: MovesSeen) -> Iterator[BenchCase]:
    """The figures of one size on one load."""
    has_goal = sessions <= _GOALS_UP_TO
    whole = [move.ended_s - move.began_s for move in seen.moves]
    pauses = [move.pause_s for move in seen.moves if move.pause_s is not None]
    silences = [seen.silence_s(move) for move in seen.moves]
    if not pauses:
        raise RunError(f"{named}: no move told its pause", hint="Look at the node's log.")
    yield limited(f"{named}, whole move p50", _rounded(statistics.median(whole)), "s", _WHOLE_S)
    yield limited(f"{named}, whole move longest", _rounded(max(whole)), "s", _WHOLE_S)
    p50_s, p99_s = (_P50_S, _P99_S) if has_goal else (None, None)
    yield limited(f"{named}, nobody's p50", _rounded(statistics.median(pauses)), "s", p50_s)
    yield limited(f"{named}, nobody's longest", _rounded(max(pauses)), "s", p99_s)
    yield limited(f"{named}, without results p50", _rounded(statistics.median(silences)), "s")
    yield limited(f"{named}, without results longest", _rounded(max(silences)), "s")
    yield limited(f"{named}, between results p50", _rounded(seen.usual_s()), "s")
    meanwhile = statistics.median(seen.beside_s(move.began_s, move.ended_s) for move in seen.moves)
    resting = statistics.median(seen.beside_resting_s())
    case = f"{named}, others' longest gap"
    yield compared(case, _rounded(meanwhile), "s", _rounded(resting), at_most=_OTHERS_FACTOR)


def _rounded(seconds: float) -> float:
    return round(seconds, 3)


def _beside_stock(named: str, sessions: int, seen: MovesSeen, moves: int, quick: bool) -> BenchCase:
    round_s = _QUICK_STOCK_ROUND_S if quick else _STOCK_ROUND_S
    ours = statistics.median(seen.silence_s(move) for move in seen.moves)
    stock = statistics.median(_stock_gaps_s(sessions, moves, round_s))
    case = f"{named}, without results p50, of stock"
    return compared(case, _rounded(ours), "s", _rounded(stock), at_most=0.5)


def _stock_gaps_s(keys: int, moves: int, round_s: int) -> list[float]:
    given = [str(number) for number in (keys, moves, round_s)]
    command = [sys.executable, "-m", "penstock.bench.peers.stock_handover", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError("the stock side of the benchmark died", hint=done.stderr[-2_000:])
    gaps: list[float] = json.loads(done.stdout)["gaps_s"]
    return gaps


def _watched(sessions: int, moves: int, wanted: float | None, say: Say) -> MovesSeen:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as name,
        live_system(len(NODES), _MEMORY_BYTES) as live,
    ):
        folder = Path(name)
        for stream in ("readings", *(f"work_{node}" for node in NODES)):
            (folder / stream).mkdir()
        readings = Readings(folder / "readings", sessions)
        readings.fill()
        channels = {query: live.channel(query) for query in (MOVED, *BESIDE)}
        text = deployment(folder, readings.gap_s)
        live.client.submit("bench", "yaml", text, str(live.home.path))
        say("filling its state")
        _await_state(live, sessions)
        with flowing(readings.give), _keeping_busy(live, folder, wanted, say):
            _await_results(channels.values())
            made = [_moved(live, number, say) for number in range(moves)]
            time.sleep(2 * _REST_S)
        live.check()
        began_s = made[0].began_s - _REST_S
        moved, *beside = (_results(channel, began_s) for channel in channels.values())
    return MovesSeen(made, moved, [[at_s for at_s, _ in times] for times in beside])


def _await_state(live: LiveSystem, sessions: int) -> None:
    """Waits until as many sessions are open as the benchmark wants."""

    def is_full() -> bool:
        live.check()
        measured = next(unit.measured for unit in live.client.fragments() if unit.name == MOVED)
        return not isinstance(measured, Unmeasured) and (
            getattr(measured, "state_rows", 0) >= 0.95 * sessions
        )

    await_that(lambda: is_full() or None, _PATIENCE_S, "the sessions did not open")


@contextmanager
def _keeping_busy(live: LiveSystem, folder: Path, wanted: float | None, say: Say) -> Iterator[None]:
    """Has both nodes as busy as wanted, if they are to be."""
    if wanted is None:
        yield
        return
    burden = Burden({node: folder / f"work_{node}" for node in NODES}, wanted)

    def is_reached() -> bool:
        used = {node.name: node.utilisation for node in live.client.nodes()}
        say("busy " + ", ".join(f"{used[node]:.0%}" for node in NODES))
        if burden.is_reached(used):
            return True
        burden.steer(used)
        time.sleep(_STEER_EVERY_S)
        return False

    with flowing(burden.give):
        await_that(lambda: is_reached() or None, _STEERED_S, "the nodes did not become as busy")
        yield


def _await_results(channels: Iterable[Channel]) -> None:
    known = [(channel, channel.last()) for channel in channels]

    def have_more() -> bool:
        return all(channel.last() != last for channel, last in known)

    await_that(lambda: have_more() or None, _PATIENCE_S, "no results came")
    time.sleep(_REST_S)


def _moved(live: LiveSystem, number: int, say: Say) -> SeenMove:
    say(f"move {number + 1}")
    unit = next(unit for unit in live.client.fragments() if unit.name == MOVED)
    target = next(node for node in live.nodes if node != unit.node)
    done = live.client.await_move(live.client.move(MOVED, target).id)
    if done.state != "done" or done.ended_s is None:
        raise RunError(f"move {number + 1} failed: {done.error}")
    paused = live.client.await_pause(done.id)
    time.sleep(_REST_S)
    return SeenMove(done.created_s, done.ended_s, paused.pause_s, unit.epoch + 1)


def _results(channel: Channel, since_s: float) -> list[tuple[float, int]]:
    """When batches with results came out since then, and of which owner."""
    found = []
    for manifest in channel.newer(channel.oldest()):
        at_s = channel.entry(manifest.sequence).stat().st_mtime
        if manifest.rows and at_s >= since_s:
            found.append((at_s, manifest.epoch))
    return found
