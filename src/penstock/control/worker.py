"""A node's Spark session at the service of its agent."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict

import psutil

from penstock.control.system import Unit
from penstock.errors import PenstockError
from penstock.spark.node import Node, NodeOptions
from penstock.spark.session import SparkSession
from penstock.spark.state import StateFolder
from penstock.spark.warming import rehearse

_ROOM_BYTES = 16 << 20


class SparkWorker:
    """Runs units as streaming queries and threads of one Spark session."""

    def __init__(self, session: SparkSession, state: StateFolder, options: NodeOptions) -> None:
        self._session = session
        self._state = state
        self._options = options
        self._node = Node(session, state, options)
        self._units: dict[str, Unit] = {}
        self._warmed: set[str] = set()
        self._usage = _Usage(options.cores)

    def start(self, unit: Unit, epoch: int) -> None:
        if unit.fragment is not None:
            self._node.start_fragment(unit.network, unit.fragment, epoch)
        else:
            assert unit.stream is not None
            self._node.start_intake(unit.stream, epoch)
        self._units[unit.name] = unit
        self._warmed.add(unit.name)

    def warm(self, unit: Unit, epoch: int) -> None:
        if unit.fragment is None:
            return
        if unit.name not in self._warmed:
            rehearse(self._session, self._state, unit.network, unit.fragment, self._options)
            self._warmed.add(unit.name)
        self._node.arm(unit.network, unit.fragment, epoch)

    def cool(self, name: str) -> None:
        self._node.disarm(name)

    def release(self, name: str, patience_s: float = 0.0) -> None:
        self._units.pop(name, None)
        self._node.release(name, patience_s)

    def failure(self, name: str) -> PenstockError | None:
        return self._node.failure(name)

    def is_finished(self, name: str) -> bool:
        return self._node.is_finished(name)

    def is_held_back(self, name: str) -> bool:
        return self._node.is_held_back(name)

    def has_room(self) -> bool:
        return shutil.disk_usage(self._state.path).free >= _ROOM_BYTES

    def measurements(self) -> dict[str, object]:
        fragments = [unit.name for unit in tuple(self._units.values()) if unit.fragment is not None]
        return {
            **self._usage.measured(),
            "fragments": {name: asdict(self._node.status(name)) for name in fragments},
        }


class _Usage:
    """What this process and its children use."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._process = psutil.Process(os.getpid())
        self._last: Mapping[int, float] = {}
        self._last_s = time.monotonic()

    def measured(self) -> dict[str, object]:
        busy_s: dict[int, float] = {}
        memory_bytes = 0
        for process in [self._process, *self._process.children(recursive=True)]:
            try:
                times = process.cpu_times()
                busy_s[process.pid] = times.user + times.system
                memory_bytes += process.memory_info().rss
            except psutil.Error:
                continue
        now_s = time.monotonic()
        worked_s = sum(max(0.0, busy - self._last.get(pid, busy)) for pid, busy in busy_s.items())
        cpu = worked_s / max(1e-9, now_s - self._last_s)
        self._last, self._last_s = busy_s, now_s
        return {
            "cpu_cores": round(cpu, 4),
            "utilisation": round(cpu / self._cores, 4),
            "memory_bytes": memory_bytes,
        }
