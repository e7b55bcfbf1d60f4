"""Agents of one node, driven by hand, with a worker and a clock that do as they are told."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from control.made_up import submission
from control.stepped import Clock, SteppedNode
from control.toys import ToyWorker, TroubledCatalog
from penstock.control.agent import Agent
from penstock.control.records import NodeRecord, UnitRecord

LEASE_S = 20.0


@pytest.fixture
def worker() -> ToyWorker:
    return ToyWorker()


@pytest.fixture
def make(catalog: TroubledCatalog, worker: ToyWorker) -> Callable[..., SteppedNode]:
    """Makes nodes, a with the worker above if nothing else is said."""
    asked = submission()
    names = {"readings": "intake", "peaks": "fragment"}
    units = [UnitRecord(name, kind, 1) for name, kind in names.items()]  # type: ignore[arg-type]
    catalog.add(vars(asked), units)

    def made(name: str = "a", own: ToyWorker | None = None) -> SteppedNode:
        node, clock = NodeRecord(name, 2, 1 << 30, pid=os.getpid()), Clock()
        return SteppedNode(Agent(node, catalog, own or worker, LEASE_S, clock=clock), clock)

    return made


@pytest.fixture
def node(make: Callable[..., SteppedNode]) -> SteppedNode:
    """Node a, which has joined."""
    made = make()
    made.settle(0.5)
    return made
