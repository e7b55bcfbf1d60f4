"""A system in a Python program: started or connected to, given flows, and asked for results."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.control.client import Client
from penstock.control.home import Home
from penstock.control.launch import bring_down, bring_up
from penstock.lang.builder import Flow, deployment
from penstock.lang.deployment import deployment_yaml
from penstock.model.durations import duration_us
from penstock.model.network import NodeSpec


@dataclass(frozen=True)
class RunningQuery:
    """A query of a running system."""

    name: str
    client: Client

    def results(self, timeout: str | None = None, groups: str | None = None) -> Iterator[pa.Table]:
        """Its rows as they come, from the oldest that are kept.

        Ends when the query has, or when nothing has come for as long as ``timeout``. Of a query
        whose results are kept in groups, ``groups`` names those to read, as ``"0-29"``.
        """
        patience_s = None if timeout is None else duration_us(timeout) / 1e6
        return self.client.results(self.name, patience_s, groups)

    def move(self, node: str) -> dict[str, Any]:
        """Moves its last fragment to another node; how that went."""
        return self.client.await_move(self.client.move(self.name, node)["id"])

    def drop(self) -> None:
        """Stops it and forgets its data."""
        self.client.drop(self.name)


@dataclass(frozen=True)
class RunningSystem:
    """A system that takes queries."""

    client: Client

    def submit(self, flow: Flow, max_latency: str | None = None) -> RunningQuery:
        """Runs a flow that has a name, with all it reads."""
        made = deployment(flow)
        name = made.network.queries[-1].name
        latency_us = None if max_latency is None else duration_us(max_latency)
        self.client.submit(
            name, "yaml", deployment_yaml(made, show_passwords=True), str(Path.cwd()), latency_us
        )
        return RunningQuery(name, self.client)

    def status(self) -> dict[str, Any]:
        """Nodes, queries, fragments and the latest moves."""
        return self.client.system()


@contextmanager
def local(
    nodes: int = 2, cores: int = 1, home: Path | None = None, on: str | None = None
) -> Iterator[RunningSystem]:
    """A system on this machine, for as long as the ``with`` block.

    Without ``home`` its data is gone afterwards. ``on`` says what the nodes of a new system are:
    ``processes``, as without it; ``inline``, all in one process; ``cluster``, workers of a Spark
    cluster started for them.
    """
    specs = [NodeSpec(f"n{number}", cores) for number in range(1, nodes + 1)]
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as scratch:
        place = Home((home or Path(scratch) / "system").absolute())
        client = bring_up(place, specs, host=on)
        try:
            yield RunningSystem(client)
        finally:
            client.close()
            bring_down(place)


def connect(url: str, token: str) -> RunningSystem:
    """The system whose controller answers at ``url``; ``token`` is in the file of that name."""
    system = RunningSystem(Client(url, token))
    system.status()
    return system
