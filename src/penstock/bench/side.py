"""One side of a comparison, as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from penstock.bench.peers.workload import Workload
from penstock.errors import RunError

Answer = dict[str, Any]


def workload(path: Path, events: int, files: int) -> Path:
    """Writes a workload; where it is."""
    Workload(path, events, files).write()
    return path


class Side:
    """A process that runs one side's pipelines; ``worker`` is the module that serves requests."""

    def __init__(self, name: str, log: Path, worker: str = "penstock.bench.peers.worker") -> None:
        self.name = name
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", worker, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )
        self._receive()

    def run(self, pipeline: str, path: Path, events: int, files: int) -> Answer:
        """Runs a pipeline over a workload."""
        return self.ask({"pipeline": pipeline, "path": str(path), "events": events, "files": files})

    def ask(self, request: dict[str, object]) -> Answer:
        """Sends a request to the process; its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> Answer:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RunError(
                f"the {self.name} side of the benchmark died", hint=f"See {self._log.name}."
            )
        answer: Answer = json.loads(line)
        return answer

    def processor_seconds(self) -> float:
        """Processor time so far of the process and of those that it has started and still has."""
        seconds = 0.0
        side = psutil.Process(self._process.pid)
        for process in (side, *side.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                seconds += times.user + times.system
        return seconds

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._log.close()
