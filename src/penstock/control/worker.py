"""A node's Spark session at the service of its agent."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterable, Mapping
from math import inf

from penstock.control.loads import Shares
from penstock.control.meter import NodeMeter
from penstock.control.system import Unit
from penstock.errors import PenstockError
from penstock.model.fragments import Fragment
from penstock.model.ids import NodeId, PartId
from penstock.model.measurements import FragmentStatus, IntakeSample, NodeSample
from penstock.model.network import Network
from penstock.spark.cluster_nodes import task_seconds
from penstock.spark.node import Node, NodeOptions
from penstock.spark.session import SparkSession
from penstock.spark.state import StateFolder
from penstock.spark.warming import BATCHES, rehearse

_ROOM_BYTES = 16 << 20
_WORKERS_STAY_S = 45.0
"""Spark ends a Python worker that has had nothing to do for a minute."""
_TO_START_WORKERS = 2

log = logging.getLogger(__name__)


class SparkWorker:
    """Runs units as streaming queries and threads of one Spark session."""

    def __init__(
        self, name: str, session: SparkSession, state: StateFolder, options: NodeOptions
    ) -> None:
        self._rehearsals = state.rehearsals(NodeId(name))
        shutil.rmtree(self._rehearsals, ignore_errors=True)
        self._session = session
        self._state = state
        self._options = options
        self._node = Node(session, state, options)
        self._units: dict[str, Unit] = {}
        self._warmed: set[str] = set()
        self._light_warmed_s = -inf
        self._meter = NodeMeter(options.cores, elsewhere_s=lambda: task_seconds(session))
        self._shares = Shares()

    def start(self, unit: Unit, epoch: int) -> None:
        if unit.fragment is not None:
            self._node.start_fragment(unit.network, unit.fragment, epoch)
        else:
            assert unit.stream is not None
            if unit.again is None:
                self._node.start_intake(unit.stream, epoch)
            else:
                self._node.read_again(PartId(unit.name), unit.stream, unit.again, epoch)
        self._units[unit.name] = unit
        self._warmed.add(unit.name)

    def warm(self, unit: Unit, epoch: int) -> None:
        if unit.fragment is None:
            return
        if self._node.is_light(unit.network, unit.fragment):
            self._warm_light(unit.network, unit.fragment)
        elif unit.name not in self._warmed and self._rehearse(unit.network, unit.fragment):
            self._warmed.add(unit.name)
        self._node.arm(unit.network, unit.fragment, epoch)

    def _warm_light(self, network: Network, fragment: Fragment) -> None:
        """Has Spark's Python workers up, which the first light fragment of a node would start."""
        idle_s = min(self._node.light_idle_s, time.monotonic() - self._light_warmed_s)
        if idle_s > _WORKERS_STAY_S:
            is_first = idle_s == inf
            if self._rehearse(network, fragment, BATCHES if is_first else _TO_START_WORKERS):
                self._light_warmed_s = time.monotonic()

    def _rehearse(self, network: Network, fragment: Fragment, batches: int = BATCHES) -> bool:
        options, place = self._options, self._rehearsals
        try:
            return rehearse(self._session, self._state, network, fragment, options, place, batches)
        except Exception:
            # Rehearsing is an optimisation; the move works without it.
            log.exception("%s could not be rehearsed", fragment.name)
            return False

    def cool(self, name: str) -> None:
        self._node.disarm(PartId(name))

    def release(self, name: str, patience_s: float = 0.0) -> None:
        self._node.release(PartId(name), patience_s)
        self._units.pop(name, None)

    def failure(self, name: str) -> PenstockError | None:
        return self._node.failure(PartId(name))

    def is_finished(self, name: str) -> bool:
        return self._node.is_finished(PartId(name))

    def is_held_back(self, name: str) -> bool:
        return self._node.is_held_back(PartId(name))

    def milestones(self, name: str) -> Mapping[str, float]:
        return self._node.milestones(PartId(name))

    def has_room(self) -> bool:
        return shutil.disk_usage(self._state.path).free >= _ROOM_BYTES

    def _statuses(self, fragments: Iterable[str]) -> dict[str, FragmentStatus]:
        found = {}
        for name in fragments:
            try:
                found[name] = self._node.status(PartId(name))
            except KeyError:
                continue  # Released by another thread just now.
        return found

    def measurements(self) -> NodeSample:
        fragments = [unit.name for unit in tuple(self._units.values()) if unit.fragment is not None]
        use = self._meter.sample()
        statuses = self._statuses(fragments)
        busy_ms = {name: status.busy_ms for name, status in statuses.items()}
        intakes_ms = self._node.intakes_spent_ms()
        spent_ms = self._shares.take(1_000 * use.worked_s, busy_ms, intakes_ms)
        return NodeSample(
            at_s=time.time(),
            cpu_cores=round(use.cpu * self._options.cores, 4),
            utilisation=round(use.cpu, 4),
            memory_bytes=use.memory_bytes,
            intakes={name: IntakeSample(ms) for name, ms in intakes_ms.items()},
            fragments={name: status.with_cost(spent_ms[name]) for name, status in statuses.items()},
        )
