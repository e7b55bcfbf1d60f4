"""Where nodes run: as processes of this machine, with their tasks there or on a cluster."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import psutil

from penstock.control.catalog import Catalog
from penstock.control.home import CLUSTER, INLINE, PROCESSES, Home
from penstock.control.records import NodeRecord
from penstock.errors import UsageError
from penstock.spark.masters import is_standalone

log = logging.getLogger(__name__)

_RESTART_PAUSE_S = 3.0
_NODE_PROCESS = "penstock.control.node_process"
_KUBERNETES = re.compile(r"k8s://\S+")


class Host(Protocol):
    """Runs the nodes of a system."""

    def keep_up(self, nodes: Sequence[NodeRecord]) -> None:
        """Starts the nodes that do not run."""
        ...

    def stop(self, nodes: Sequence[NodeRecord]) -> None:
        """Lets all nodes stop."""
        ...


class LocalHost:
    """Runs every node as a process, and starts again what dies.

    With a ``master`` their tasks run on that cluster.
    """

    def __init__(self, home: Home, master: str | None = None) -> None:
        self._home = home
        self.master = master
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._started_s: dict[str, float] = {}

    def keep_up(self, nodes: Sequence[NodeRecord]) -> None:
        """Starts the nodes that have no process."""
        for node in nodes:
            own = self._processes.get(node.name)
            if own is not None and own.poll() is None:
                continue
            if own is None and _is_running(self._home, node):
                continue
            if time.monotonic() - self._started_s.get(node.name, -1e9) > _RESTART_PAUSE_S:
                self._start(node.name)

    def _start(self, name: str) -> None:
        log.info("starting node %s", name)
        command = [
            sys.executable,
            "-m",
            _NODE_PROCESS,
            str(self._home.path),
            name,
            *([self.master] if self.master else []),
        ]
        with self._home.log(name).open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=self._environment(),
            )
        self._started_s[name] = time.monotonic()

    def _environment(self) -> dict[str, str]:
        settings = self._home.spark_settings
        known = {"SPARK_CONF_DIR": str(settings)} if settings.is_dir() else {}
        return os.environ | known

    def stop(self, nodes: Sequence[NodeRecord], patience_s: float = 20.0) -> None:
        """Lets all nodes stop cleanly; those that do not are killed with all their children."""
        pids = {own.pid for own in self._processes.values() if own.poll() is None}
        pids |= {node.pid for node in nodes if _is_running(self._home, node)}
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


class ClusterHost:
    """Runs every node on a worker of its own, of a Spark cluster that it starts on this machine."""

    def __init__(self, home: Home) -> None:
        from penstock.spark.standalone import StandaloneCluster

        self._cluster = StandaloneCluster(home.path / "cluster", home.spark_settings)
        self._nodes = LocalHost(home)

    def keep_up(self, nodes: Sequence[NodeRecord]) -> None:
        """Starts what does not run of the cluster, and then of the nodes."""
        # Nodes of a master that is gone end by themselves, and start again with the new one.
        self._nodes.master = self._cluster.keep_up(
            {node.name: (node.cores, node.memory_bytes) for node in nodes}
        )
        self._nodes.keep_up(nodes)

    def stop(self, nodes: Sequence[NodeRecord]) -> None:
        """Lets all nodes stop, and then the cluster."""
        self._nodes.stop(nodes)
        self._cluster.stop()


def checked_host(written: str) -> str:
    """A host as people write it, if there is such a one.

    >>> checked_host("spark://10.0.0.1:7077")
    'spark://10.0.0.1:7077'
    """
    is_master = is_standalone(written) or _KUBERNETES.fullmatch(written)
    if written in (PROCESSES, INLINE, CLUSTER) or is_master:
        return written
    raise UsageError(
        f"nodes cannot run on {written}",
        hint=f"There are {PROCESSES}, {INLINE}, {CLUSTER}, spark://HOST:PORT and k8s://URL.",
    )


def host_of(home: Home, catalog: Catalog) -> Host:
    """The host that was chosen for a system."""
    chosen = home.host
    if chosen == INLINE:
        # Only now: the others have no Spark in the controller's process.
        from penstock.control.inline import InlineHost

        return InlineHost(home, catalog)
    if chosen == CLUSTER:
        return ClusterHost(home)
    return LocalHost(home, None if chosen == PROCESSES else chosen)


def _is_running(home: Home, node: NodeRecord) -> bool:
    """Whether the process that last was the node still is it: numbers are given out again."""
    if not node.pid:
        return False
    try:
        process = psutil.Process(node.pid)
        started = [_NODE_PROCESS, str(home.path), node.name]
        return process.is_running() and all(word in process.cmdline() for word in started)
    except psutil.Error:
        return False
