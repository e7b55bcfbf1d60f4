"""Where nodes run: here, as processes of this machine."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

from penstock.control.home import Home
from penstock.control.records import NodeRecord

log = logging.getLogger(__name__)

_RESTART_PAUSE_S = 3.0


class LocalHost:
    """Runs every node as a process, and starts again what dies."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._started_s: dict[str, float] = {}

    def keep_up(self, nodes: Iterable[NodeRecord]) -> None:
        """Starts the nodes that have no process."""
        for node in nodes:
            own = self._processes.get(node.name)
            if own is not None and own.poll() is None:
                continue
            if own is None and _is_running(node):
                continue
            if time.monotonic() - self._started_s.get(node.name, -1e9) > _RESTART_PAUSE_S:
                self._start(node.name)

    def _start(self, name: str) -> None:
        log.info("starting node %s", name)
        command = [
            sys.executable,
            "-m",
            "penstock.control.node_process",
            str(self._home.path),
            name,
        ]
        with self._home.log(name).open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._started_s[name] = time.monotonic()

    def stop(self, nodes: Iterable[NodeRecord], patience_s: float = 20.0) -> None:
        """Lets all nodes stop cleanly; those that do not are killed with all their children."""
        pids = {own.pid for own in self._processes.values() if own.poll() is None}
        pids |= {node.pid for node in nodes if _is_running(node)}
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until_s = time.monotonic() + patience_s
        while any(map(self._is_left, pids)) and time.monotonic() < until_s:
            time.sleep(0.05)
        for pid in filter(self._is_left, pids):
            log.warning("process %d did not stop and is killed", pid)
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def _is_left(self, pid: int) -> bool:
        for own in self._processes.values():
            if own.pid == pid:
                return own.poll() is None
        return psutil.pid_exists(pid)


def _is_running(node: NodeRecord) -> bool:
    """Whether the process that last was the node still is one."""
    if not node.pid:
        return False
    try:
        process = psutil.Process(node.pid)
        return process.is_running() and "penstock.control.node_process" in process.cmdline()
    except psutil.Error:
        return False
