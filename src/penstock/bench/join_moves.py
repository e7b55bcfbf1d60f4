"""How long a group of a join is silent when it moves between two nodes, by the window's length.

The group holds a quarter of a window of two million rows, however long the window is. Its pause is
from the last results of it on the one node to the first on the other, and so has in it what passes
between two results when nothing moves. Beside it stand the other groups of both nodes meanwhile.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.bench.flow import flowing, longest_gap_s, put_file
from penstock.bench.report import BenchCase, Report, chosen_cases, limited
from penstock.channels.channel import Channel
from penstock.control.answer_models import MoveAnswer
from penstock.control.client import await_that
from penstock.errors import RunError
from penstock.kernels.group_numbers import group_numbers
from penstock.load.arrays import Ints
from penstock.model.partition_groups import PartitionGroups
from penstock.studies.live_system import READER, LiveSystem, live_system

Say = Callable[[str], None]
GROUPS, HOT_GROUP, HOT_SHARE = 60, 7, 0.25
_P50_S, _P99_S, _WINDOWS_FACTOR, _OTHERS_FACTOR = 0.5, 1.0, 1.5, 1.5
_KEYS = 6_000_000
_FILLING = 60
_REST_S, _PATIENCE_S = 2.0, 300.0
_MEMORY_BYTES = 3 << 30
_BEGIN_US = 1_800_000_000_000_000
_PARTS = ("pairs_part1", "pairs_part2")
_SIDES = (("calls", "ts"), ("taps", "at"))


def join_moves(quick: bool, say: Say, only: str = "") -> Report:
    """Moves of a group there and back, with windows of a minute and of ten."""
    windows_s = chosen_cases(
        {f"a window of {window_s} s": window_s for window_s in (60, 600)}, only
    )
    rows, moves = (50_000, 2) if quick else (1_000_000, 30)
    cases: list[BenchCase] = []
    median_s: list[float] = []
    for window_s in windows_s:
        say(f"a window of {window_s} s")
        seen = _watched(window_s, rows, moves, say)
        pauses = [seen.pause_s(move) for move in seen.moves]
        median_s.append(statistics.median(pauses))
        cases += _cases(f"{window_s} s", seen, pauses)
    if len(windows_s) > 1:
        factor = max(median_s) / min(median_s)
        cases.append(limited("pause p50, longest over shortest", factor, "", _WINDOWS_FACTOR))
    return Report("join-moves", tuple(cases))


@dataclass(frozen=True)
class GroupMoved:
    """A move of the hot group as it was seen from outside: from when to when, to which part."""

    began_s: float
    ended_s: float
    part: str
    told_s: float | None


@dataclass(frozen=True)
class ResultTimes:
    """When each part gave results of the hot group, and of others; sorted."""

    moves: Sequence[GroupMoved]
    hot_s: dict[str, list[float]]
    others_s: dict[str, list[float]]

    def pause_s(self, move: GroupMoved) -> float:
        """From the last results of the group where it was to the first where it went."""
        (source,) = set(_PARTS) - {move.part}
        last_s = max(at for at in self.hot_s[source] if at <= move.ended_s + _REST_S)
        return min(at for at in self.hot_s[move.part] if at > last_s) - last_s

    def others_gap_s(self, began_s: float, ended_s: float) -> float:
        """The longest that one of the parts gave nothing of its other groups."""
        return max(longest_gap_s(times, began_s, ended_s) for times in self.others_s.values())

    def resting_gaps_s(self) -> list[float]:
        """The same for stretches without a move, as long as the move before them."""
        found = []
        for move, following in pairwise(self.moves):
            began_s = move.ended_s + _REST_S / 2
            ended_s = min(following.began_s, began_s + move.ended_s - move.began_s)
            found.append(self.others_gap_s(began_s, ended_s))
        return found


def _cases(window: str, seen: ResultTimes, pauses: list[float]) -> Iterator[BenchCase]:
    yield limited(f"{window}, pause p50", round(statistics.median(pauses), 3), "s", _P50_S)
    yield limited(f"{window}, pause p99", round(max(pauses), 3), "s", _P99_S)
    told = [move.told_s for move in seen.moves if move.told_s is not None]
    if told:
        yield limited(f"{window}, nobody's p50", round(statistics.median(told), 3), "s")
    hot = sorted(at for times in seen.hot_s.values() for at in times)
    usual = [later - earlier for earlier, later in pairwise(hot)]
    yield limited(f"{window}, between results p50", round(statistics.median(usual), 3), "s")
    meanwhile = [seen.others_gap_s(move.began_s, move.ended_s) for move in seen.moves]
    resting = statistics.median(seen.resting_gaps_s())
    ratio = statistics.median(meanwhile) / max(1e-9, resting)
    yield BenchCase(
        f"{window}, others' longest gap",
        round(statistics.median(meanwhile), 3),
        "s",
        round(resting, 3),
        round(ratio, 3),
        f"<= {_OTHERS_FACTOR:g}",
        ratio <= _OTHERS_FACTOR,
    )


class Sides:
    """Rows of both streams with ever later times, a part of them of the hot group."""

    def __init__(self, folder: Path, window_s: int, rows: int) -> None:
        self._folder = folder
        self._rate_per_s = rows / window_s
        self._window_s = window_s
        self._random = np.random.default_rng(1)
        self._until_s = 0.0
        self._files = 0
        keys = np.arange(_KEYS)
        numbers = numbers_of(keys)
        self._hot, self._cold = keys[numbers == HOT_GROUP], keys[numbers != HOT_GROUP]
        for stream, _ in _SIDES:
            (folder / stream).mkdir()

    def fill(self) -> None:
        """A whole window, in a few files."""
        for _ in range(_FILLING):
            self.give(self._window_s / _FILLING)

    def give(self, seconds: float) -> None:
        """One file of each side that goes on for so long."""
        began_s, self._until_s = self._until_s, self._until_s + seconds
        count = round(self._until_s * self._rate_per_s) - round(began_s * self._rate_per_s)
        self._files += 1
        for stream, time_column in _SIDES:
            rows = self._rows(time_column, began_s, seconds, count)
            put_file(self._folder / stream, self._files, rows)

    def _rows(self, time_column: str, began_s: float, seconds: float, count: int) -> pa.Table:
        is_hot = self._random.random(count) < HOT_SHARE
        keys = self._random.choice(self._cold, count)
        keys[is_hot] = self._random.choice(self._hot, int(is_hot.sum()))
        at_us = _BEGIN_US + 1e6 * (began_s + seconds * np.arange(count) / max(1, count))
        times = pa.array(at_us.astype(np.int64), pa.timestamp("us"))
        return pa.table({time_column: times, "k": pa.array(keys, pa.int64())})


def numbers_of(keys: Ints) -> Ints:
    """The groups of keys."""
    return group_numbers(pa.table({"k": keys}), PartitionGroups(("k",), GROUPS))


def deployment(folder: Path, window_s: int) -> str:
    """The join as a deployment file; groups move by hand only."""
    sides = "".join(
        f"  {name}:\n"
        f"    source: {{directory: {folder / name}, format: parquet, pattern: '*.parquet'}}\n"
        f"    schema: {at} timestamp, k bigint\n"
        f"    event_time: {at}\n"
        "    lateness: 0s\n"
        for name, at in _SIDES
    )
    within = f"BETWEEN l.ts - INTERVAL {window_s} SECONDS AND l.ts + INTERVAL {window_s} SECONDS"
    return (
        f"streams:\n{sides}queries:\n  pairs:\n"
        f"    sql: SELECT l.ts, l.k FROM calls l JOIN taps r ON l.k = r.k AND r.at {within}\n"
        f"    join: {{spread: 2, groups: {GROUPS}, moves: 'off'}}\n"
    )


def _watched(window_s: int, rows: int, moves: int, say: Say) -> ResultTimes:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as name,
        live_system(2, _MEMORY_BYTES) as live,
    ):
        folder = Path(name)
        sides = Sides(folder, window_s, rows)
        sides.fill()
        channels = {part: live.channel(part) for part in _PARTS}
        live.client.submit("bench", "yaml", deployment(folder, window_s), str(live.home.path))
        say(f"a window of {window_s} s: filling it with two times {rows:,} rows")
        _await_window(live, rows)
        with flowing(sides.give):
            _await_results(channels)
            made = [_moved(live, number, say) for number in range(moves)]
            time.sleep(2 * _REST_S)
        live.check()
        times = {part: _times_s(channel, made[0].began_s) for part, channel in channels.items()}
    hot = {part: [at for at, is_hot, _ in found if is_hot] for part, found in times.items()}
    others = {part: [at for at, _, is_other in found if is_other] for part, found in times.items()}
    return ResultTimes(made, hot, others)


def _await_window(live: LiveSystem, rows: int) -> None:
    """Waits until both parts have a window in their hands that is as large as it is to be."""

    def is_full() -> bool:
        live.check()
        held = [part.rows_held for join in live.client.joins() for part in join.parts]
        return len(held) == 2 and min(held) >= 1.9 * rows

    await_that(lambda: is_full() or None, _PATIENCE_S, "the windows did not become full")


def _await_results(channels: dict[str, Channel]) -> None:
    known = {part: channel.last() for part, channel in channels.items()}

    def has_more() -> bool:
        return all(channel.last() != known[part] for part, channel in channels.items())

    await_that(lambda: has_more() or None, _PATIENCE_S, "no results came")
    time.sleep(_REST_S)


def _moved(live: LiveSystem, number: int, say: Say) -> GroupMoved:
    say(f"move {number + 1}")
    time.sleep(_REST_S)
    (join,) = live.client.joins()
    target = next(part for part in join.parts if HOT_GROUP not in part.groups)
    began_s = time.time()
    done: MoveAnswer = live.client.await_move(
        live.client.move(f"pairs:{HOT_GROUP}", str(target.node)).id
    )
    if done.state != "done":
        raise RunError(f"move {number + 1} of the group failed: {done.error}")
    return GroupMoved(began_s, time.time(), target.fragment, done.pause_s)


def _times_s(channel: Channel, began_s: float) -> list[tuple[float, bool, bool]]:
    """When batches came out, and whether they had rows of the hot group and of others."""
    found = []
    for manifest in channel.newer(channel.oldest()):
        at_s = channel.entry(manifest.sequence).stat().st_mtime
        if not manifest.rows or at_s < began_s - 2 * _REST_S:
            continue
        tables = [channel.rows_of(file, ["k"]) for file in manifest.files if file.rows]
        is_hot = numbers_of(pa.concat_tables(tables)["k"].to_numpy()) == HOT_GROUP
        found.append((at_s, bool(is_hot.any()), bool((~is_hot).any())))
    channel.advance(READER, channel.oldest())
    return found
