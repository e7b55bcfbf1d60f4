"""A node, and a controller, that kill themselves at a step of a hand-over that a test has named.

``python -m system.mortal node HOME NAME`` is a node, ``python -m system.mortal controller HOME`` a
controller; both are the real ones, with something lying in wait at their steps. A file named after
a step in HOME/mortal names the one who takes it away when it comes there, and is gone.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.control import hosts, node_process, server
from penstock.control.catalog import Catalog
from penstock.control.hosts import LocalHost

# By which the controller knows a node's process, on its command line.
_MARK = "penstock.control.node_process"


class Steps:
    """Steps at which a process may have to die."""

    def __init__(self, folder: Path, who: str) -> None:
        self._folder, self._who = folder, who
        self._is_aside = False

    def reached(self, step: str) -> None:
        path = self._folder / step
        if self._is_aside or not path.exists() or path.read_text() != self._who:
            return
        path.unlink()
        print(f"dies at: {step}", flush=True)
        os.killpg(0, signal.SIGKILL)

    @contextmanager
    def _aside(self) -> Iterator[None]:
        self._is_aside = True
        try:
            yield
        finally:
            self._is_aside = False

    def guard(
        self, owner: Any, name: str, before: str = "", after: str = "", *, aside: bool = False
    ) -> None:
        """Puts steps around something that is called.

        What is done ``aside``, to be ready, comes to many steps without being at any of them.
        """
        real: Callable[..., Any] = getattr(owner, name)

        def call(*given: Any, **also: Any) -> Any:
            if before:
                self.reached(before)
            with self._aside() if aside else nullcontext():
                done = real(*given, **also)
            if after:
                self.reached(after)
            return done

        setattr(owner, name, call)


def guard_node(steps: Steps) -> None:
    from penstock.channels.writer import Writer
    from penstock.control import worker
    from penstock.spark import checkpoints
    from penstock.spark.fragment_run import FragmentFolder
    from penstock.spark.node import Node

    steps.guard(worker, "rehearse", before="rehearse", aside=True)
    steps.guard(Node, "arm", before="arm", after="armed", aside=True)
    steps.guard(Node, "release", before="release", after="released")
    steps.guard(FragmentFolder, "claim", after="claim")
    steps.guard(checkpoints, "_fill", after="take over")
    aside = SimpleNamespace(rmtree=shutil.rmtree, copyfile=shutil.copyfile)
    steps.guard(aside, "rmtree", before="clean up")
    checkpoints.shutil = aside  # type: ignore[assignment]
    steps.guard(Node, "start_fragment", after="start")
    steps.guard(Writer, "commit", before="commit", after="committed")


def guard_controller(steps: Steps) -> None:
    steps.guard(Catalog, "assign", after="assign")
    steps.guard(Catalog, "change_move", before="change move")


class MortalHost(LocalHost):
    """Starts nodes that may have to die."""

    def _start(self, name: str) -> None:
        real = hosts.subprocess.Popen

        def popen(command: list[str], **also: Any) -> Any:
            home, node = command[-2:]
            mortal = [sys.executable, "-m", "system.mortal", "node", home, node, _MARK]
            return real(mortal, **also)

        hosts.subprocess.Popen = popen  # type: ignore[assignment, misc]
        try:
            super()._start(name)
        finally:
            hosts.subprocess.Popen = real  # type: ignore[misc]


def main(kind: str, home: str, *rest: str) -> int:
    steps = Steps(Path(home) / "mortal", rest[0] if kind == "node" else "controller")
    if kind == "node":
        guard_node(steps)
        return node_process.main([home, rest[0]])
    guard_controller(steps)
    hosts.LocalHost = MortalHost  # type: ignore[misc]
    return server.main([home, "0"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
