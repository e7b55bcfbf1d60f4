"""What rounds of a bundle take, as a process: ``MEMBERS ROWS WARM_UP MEASURED FOLDER``.

The members are those of ``penstock bench density``. Every round gets so many rows, the next one
when it is done, so what else the machine does decides how long this takes, but not what is
measured: processor time of all processes, by rounds. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from penstock.bench.density_load import ROUND_S, network, rows_until
from penstock.bench.processes import processor_s, total
from penstock.channels.files import write_files
from penstock.channels.writer import Writer
from penstock.errors import RunError
from penstock.model.ids import PartId, channel_for
from penstock.place.fuse import fuse
from penstock.spark.node import Node, NodeOptions
from penstock.spark.session import SessionOptions, start_session
from penstock.spark.state import StateFolder

_CORES = 2
_OPTIONS = SessionOptions(cores=_CORES, memory_bytes=1 << 30)
_RETAINED_ROWS = 10_000
_LOOK_EVERY_MS = 200
_POLL_S = 0.05
_PATIENCE_S = 120.0
_BEGIN_US = 1_800_000_000_000_000


class LightRounds:
    """Some members on a node, to whom rounds are given one by one."""

    def __init__(self, node: Node, writer: Writer, members: int, rows: int) -> None:
        self._node, self._writer, self._rows = node, writer, rows
        self._names = [PartId(f"q{number}") for number in range(members)]
        self._random = np.random.default_rng(1)
        self._given = 0

    def run(self, rounds: int) -> None:
        """Has all members go through so many rounds."""
        for _ in range(rounds):
            number, self._given = self._given, self._given + 1
            until_us = _BEGIN_US + int(self._given * ROUND_S * 1e6)
            rows = rows_until(until_us, ROUND_S, self._rows, self._random)
            files = write_files(rows, self._writer, number)
            self._writer.commit(number, files, until_us, arrived_s=time.time())
            self._await(self._given)

    def _await(self, batches: int) -> None:
        until_s = time.monotonic() + _PATIENCE_S
        while self._node.batches(self._names[-1]) < batches:
            failed = self._node.failure(self._names[-1])
            if failed is not None:
                raise failed
            if time.monotonic() > until_s:
                raise RunError(f"round {batches} has not ended within {_PATIENCE_S:g} s")
            time.sleep(_POLL_S)


@contextmanager
def rounds_of(members: int, rows: int, folder: Path) -> Iterator[LightRounds]:
    """A node with so many members, whose rounds get so many rows each."""
    session = start_session("rounds", _OPTIONS, folder / "spark.log")
    state = StateFolder(folder / "state")
    options = NodeOptions(
        cores=_CORES, retained_rows=_RETAINED_ROWS, engine="light", trigger_ms=_LOOK_EVERY_MS
    )
    node = Node(session, state, options)
    queried = network(members, limit_s=None)
    for fragment in fuse(queried):
        node.start_fragment(queried, replace(fragment, is_read=True), 1)
    try:
        writer = Writer(state.channel(channel_for("readings")), 1, _RETAINED_ROWS)
        yield LightRounds(node, writer, members, rows)
    finally:
        node.stop()


def main(arguments: list[str]) -> None:
    """Measures rounds and prints what one took."""
    members, rows, warm_up, measured = map(int, arguments[:4])
    with rounds_of(members, rows, Path(arguments[4])) as rounds:
        rounds.run(warm_up)
        before_s = total(os.getpid(), processor_s)
        rounds.run(measured)
        spent_s = total(os.getpid(), processor_s) - before_s
    print(json.dumps({"ms": 1e3 * spent_s / measured}))


if __name__ == "__main__":
    main(sys.argv[1:])
