"""A process that runs a bundle over a finished channel, and kills itself at a named step.

``python -m system.bundled FOLDER EPOCH [STEP NTH]``: dies when it comes to STEP for the NTH time;
without a step it works until everything is out.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse
from penstock.spark.bundles import bundle, light_fragments
from penstock.spark.node import Node, NodeOptions
from penstock.spark.session import SessionOptions, start_session
from penstock.spark.state import StateFolder

DEPLOYMENT = """
streams:
  s:
    source: {directory: in, format: csv}
    schema: ts timestamp, k string, x double
    event_time: ts
    lateness: 0s
queries:
  sums:
    sql: SELECT k, window.end AS at, sum(x) AS x FROM s GROUP BY k, window(ts, '10 seconds')
    to: {files: out/sums}
  slides:
    sql: SELECT window.start AS at, avg(x) AS x FROM s GROUP BY window(ts, '9 s', '3 s')
    to: {files: out/slides}
"""


def main(folder: Path, epoch: int, step: str = "", nth: int = 0) -> None:
    left = nth

    def reached(name: str) -> None:
        nonlocal left
        if name == step:
            left -= 1
            if not left:
                print(f"dies at: {step}", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

    bundle._SMALLEST_SNAPSHOT = 1  # so that there are several in so short a run
    made = partial(bundle.Bundle, on_step=reached)
    light_fragments.Bundle = made  # type: ignore[assignment,misc]
    session = start_session("bundled", SessionOptions(), folder / "spark.log")
    state = StateFolder(folder)
    network = parse_deployment(DEPLOYMENT, "s", folder).network
    node = Node(session, state, NodeOptions(max_rows_per_batch=1))
    for fragment in fuse(network):
        node.start_fragment(network, fragment, epoch)
    names = [fragment.name for fragment in fuse(network)]
    while not all(map(node.is_finished, names)):
        for failure in filter(None, map(node.failure, names)):
            raise failure
        time.sleep(0.01)
    node.stop()
    print("done", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]), int(given[1]), *given[2:3], *map(int, given[3:4]))
