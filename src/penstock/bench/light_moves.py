"""How long the move of a light fragment takes, by the state it has, while both sides work.

As a process: called with ``KEYS MOVES FOLDER``, it prints the moves as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.channels.files import write_files
from penstock.channels.writer import Writer
from penstock.lang.deployment import parse_deployment
from penstock.model.ids import PartId, channel_for
from penstock.place.fuse import fuse
from penstock.spark.node import Node, NodeOptions
from penstock.spark.session import SessionOptions, start_session
from penstock.spark.state import StateFolder

_ROWS_A_BATCH = 500
_BATCH_US = 250_000
_FIRST_MOVES = 5
_ROUND_MS = 200
_MOVING = PartId("moving")
_LOOK_EVERY_S = 0.002
_DEPLOYMENT = """
streams:
  readings:
    source: {directory: in, format: parquet}
    schema: ts timestamp, k bigint, x double
    event_time: ts
    lateness: 0s
queries:
  moving: {sql: "SELECT k, window.end AS at, sum(x) AS x FROM readings GROUP BY k, window(ts, '1000 days')", to: memory}
  staying_too: {sql: "SELECT window.end AS at, max(x) AS x FROM readings GROUP BY window(ts, '1 second')", to: memory}
  staying: {sql: "SELECT window.end AS at, count(*) AS n FROM readings GROUP BY window(ts, '1 second')", to: memory}
"""  # noqa: E501


@dataclass(frozen=True)
class LightMove:
    """One move: from its order to the first batch elsewhere, and the part without batches."""

    whole_s: float
    pause_s: float


def measure_moves(keys: int, moves: int, folder: Path) -> list[LightMove]:
    """Moves of a member with a state row for each of ``keys``, back and forth."""
    session = start_session("moves", SessionOptions(cores=2, memory_bytes=1 << 30), folder / "log")
    try:
        work = _Work(StateFolder(folder))
        sides = [Node(session, work.state, NodeOptions(trigger_ms=_ROUND_MS)) for _ in range(2)]
        for at, name in ((0, "moving"), (0, "staying"), (1, "staying_too")):
            sides[at].start_fragment(work.network, work.fragments[name], 1)
        work.give(np.arange(keys))
        work.await_batch(sides[0], _MOVING, 0)
        # The first moves of a young process compile what later ones find ready.
        done = [
            _move(work, sides[number % 2], sides[1 - number % 2], number + 2)
            for number in range(_FIRST_MOVES + moves)
        ]
        for side in sides:
            side.stop()
        return done[_FIRST_MOVES:]
    finally:
        session.stop()


def _move(work: _Work, source: Node, target: Node, epoch: int) -> LightMove:
    before = source.batches(_MOVING)
    work.give()
    work.await_batch(source, _MOVING, before)
    ordered_s = time.perf_counter()
    target.arm(work.network, work.fragments["moving"], epoch)
    work.give()
    stopped_s = time.perf_counter()
    source.release(_MOVING)
    target.start_fragment(work.network, work.fragments["moving"], epoch)
    work.await_batch(target, _MOVING, 0)
    arrived_s = time.perf_counter()
    return LightMove(arrived_s - ordered_s, arrived_s - stopped_s)


class _Work:
    """A channel that is fed, and what reads it."""

    def __init__(self, state: StateFolder) -> None:
        self.state = state
        self._writer = Writer(state.channel(channel_for("readings")), 1)
        self._random = np.random.default_rng(1)
        self._batches = 0
        self._keys = 1
        self.network = parse_deployment(_DEPLOYMENT, "moves.yaml", state.path).network
        self.fragments = {fragment.name: fragment for fragment in fuse(self.network)}

    def await_batch(self, node: Node, name: PartId, after: int) -> None:
        """Waits until a node has got through one more batch of a fragment."""
        while node.batches(name) <= after:
            failure = node.failure(name)
            if failure is not None:
                raise failure
            time.sleep(_LOOK_EVERY_S)

    def give(self, keys: np.ndarray | None = None) -> None:
        """One more batch: of these keys, or of some that are there already."""
        if keys is None:
            keys = self._random.integers(0, self._keys, _ROWS_A_BATCH)
        self._keys = max(self._keys, len(keys))
        self._batches += 1
        now_us = self._batches * _BATCH_US
        rows = pa.table(
            {
                "ts": pa.array(np.full(len(keys), now_us), pa.timestamp("us", tz="UTC")),
                "k": pa.array(keys, pa.int64()),
                "x": self._random.random(len(keys)),
            }
        )
        files = write_files(rows, self._writer, self._batches)
        self._writer.commit(self._batches, files, now_us)


if __name__ == "__main__":
    made = measure_moves(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    print(json.dumps([asdict(move) for move in made]))
