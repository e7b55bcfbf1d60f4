"""Agents of one node, in a hurry, with a worker and a clock that do as they are told."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from control.agent.facts import Clock
from control.made_up import submission
from control.toys import ToyWorker, TroubledCatalog
from penstock.control import agent as module
from penstock.control.agent import Agent
from penstock.control.records import NodeRecord, UnitRecord


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is looked at more often than in earnest."""
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(module, "_IDLE_EVERY_S", 0.01)
    monkeypatch.setattr(module, "_CHECK_EVERY_S", 0.0)
    monkeypatch.setattr(module, "_SAMPLE_EVERY_S", 0.02)
    monkeypatch.setattr(module, "_RENEW_EVERY_S", 0.05)
    monkeypatch.setattr(module, "_STOP_AGAIN_AFTER_S", 0.05)


@pytest.fixture
def worker() -> ToyWorker:
    return ToyWorker()


@pytest.fixture
def make(catalog: TroubledCatalog, worker: ToyWorker) -> Callable[..., Agent]:
    """Makes agents, of node a and of the worker above if nothing else is said."""
    asked = submission()
    names = {"readings": "intake", "peaks": "fragment"}
    units = [UnitRecord(name, kind, 1) for name, kind in names.items()]  # type: ignore[arg-type]
    catalog.add(vars(asked), units)

    def agent(lease_s: float = 20.0, name: str = "a", own: ToyWorker | None = None) -> Agent:
        node = NodeRecord(name, 2, 1 << 30, pid=os.getpid())
        return Agent(node, catalog, own or worker, lease_s)

    return agent


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The agent's clock; the catalog has its own."""
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made
