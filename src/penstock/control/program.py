"""A system in a Python program: started or connected to, given flows, and asked for results."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from penstock.control.answer_models import MoveAnswer, SystemAnswer
from penstock.control.client import Client
from penstock.control.home import Home
from penstock.control.launch import bring_down, bring_up
from penstock.errors import InputError, PenstockError, listed, suggestion
from penstock.lang.builder import Flow, deployment
from penstock.lang.deployment import deployment_yaml
from penstock.model.beginnings import checked_start
from penstock.model.durations import duration_us
from penstock.model.network import Deployment, NodeSpec

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class RunningQuery:
    """A query of a running system."""

    name: str
    client: Client

    def __repr__(self) -> str:
        return f"<RunningQuery {self.name} at {self.client.url}>"

    def results(self, timeout: str | None = None, groups: str | None = None) -> Iterator[pa.Table]:
        """Its rows as they come, from the oldest that are kept.

        Ends when the query has, or when nothing has come for as long as ``timeout``. Of a query
        whose results are kept in groups, ``groups`` names those to read, as ``"0-29"``.
        """
        patience_s = None if timeout is None else duration_us(timeout) / 1e6
        return self.client.results(self.name, patience_s, groups)

    def to_pandas(self, timeout: str | None = None) -> pd.DataFrame:
        """All its rows as a DataFrame, once it has ended or nothing has come for ``timeout``."""
        tables = list(self.results(timeout))
        return (pa.concat_tables(tables) if tables else pa.table({})).to_pandas()

    def move(self, node: str) -> MoveAnswer:
        """Moves its last fragment to another node; how that went."""
        return self.client.await_move(self.client.move(self.name, node).id)

    def drop(self) -> None:
        """Stops it and forgets its data."""
        self.client.drop(self.name)


@dataclass(frozen=True, repr=False)
class RunningDeployment:
    """Queries that were submitted together, by name."""

    name: str
    queries: Mapping[str, RunningQuery]
    client: Client

    def __repr__(self) -> str:
        return f"<RunningDeployment {self.name}: {', '.join(self.queries)} at {self.client.url}>"

    def __getitem__(self, query: str) -> RunningQuery:
        if query not in self.queries:
            hint = f"There are {listed(self.queries)}. {suggestion(query, self.queries)}".strip()
            raise InputError(f"{self.name} has no query {query}", hint=hint)
        return self.queries[query]

    def drop(self) -> None:
        """Stops all of it and forgets its data."""
        self.client.drop(self.name)


@dataclass(frozen=True, repr=False)
class RunningSystem:
    """A system that takes queries."""

    client: Client

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.client.url}>"

    @overload
    def submit(
        self, work: Flow, /, *, max_latency: str | None = None, start: str = "now"
    ) -> RunningQuery: ...

    @overload
    def submit(
        self, work: Deployment, /, *, max_latency: str | None = None, start: str = "now"
    ) -> RunningDeployment: ...

    @overload
    def submit(
        self, work: Flow, /, *more: Flow, max_latency: str | None = None, start: str = "now"
    ) -> RunningDeployment: ...

    def submit(
        self,
        work: Flow | Deployment,
        /,
        *more: Flow,
        max_latency: str | None = None,
        start: str = "now",
    ) -> RunningQuery | RunningDeployment:
        """Runs a flow that has a name, with all it reads; or several, or a deployment, as one.

        A stream from outside that runs already is shared if it is described in the same way. What
        is read of streams that run already counts from ``start`` on: ``now``, ``oldest`` for what
        is kept of them, or ``start`` for all of their rows.
        """
        if isinstance(work, Deployment):
            self._submit(work, work.name, max_latency, start)
            return self._running(work)
        made = deployment(work, *more)
        name = made.network.queries[-1].name
        self._submit(made, name, max_latency, start)
        return self._running(made, name) if more else RunningQuery(name, self.client)

    def _submit(self, made: Deployment, name: str, max_latency: str | None, start: str) -> None:
        text = deployment_yaml(made, show_passwords=True)
        latency_us = None if max_latency is None else duration_us(max_latency)
        folder = str(Path.cwd())
        self.client.submit(name, "yaml", text, folder, latency_us, checked_start(start))

    def _running(self, made: Deployment, name: str | None = None) -> RunningDeployment:
        names = [query.name for query in made.network.queries]
        queries = {query: RunningQuery(query, self.client) for query in names}
        return RunningDeployment(name or made.name, queries, self.client)

    def status(self) -> SystemAnswer:
        """Nodes, queries, fragments and the latest moves."""
        return self.client.system()


@dataclass(frozen=True, repr=False)
class LocalSystem(RunningSystem):
    """A system on this machine that ends with a ``with`` block, with :meth:`close` or the program.

    ``scratch`` is where its data is if nobody wants it afterwards.
    """

    home: Home = field(kw_only=True)
    scratch: tempfile.TemporaryDirectory[str] = field(kw_only=True)

    def __enter__(self) -> LocalSystem:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stops the nodes and the controller; once that is done, nothing."""
        atexit.unregister(self.close)
        if not Path(self.scratch.name).exists():
            return
        self.client.close()
        try:
            bring_down(self.home)
        finally:
            self.scratch.cleanup()


def local(
    nodes: int = 2, cores: int = 1, home: Path | None = None, on: str | None = None
) -> LocalSystem:
    """A system on this machine, for as long as a ``with`` block, or until the program ends.

    Without ``home`` its data is gone afterwards. ``on`` says what the nodes of a new system are:
    ``processes``, as without it; ``inline``, all in one process; ``cluster``, workers of a Spark
    cluster started for them.
    """
    specs = [NodeSpec(f"n{number}", cores) for number in range(1, nodes + 1)]
    scratch = tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True)
    place = Home((home or Path(scratch.name) / "system").absolute())
    try:
        system = LocalSystem(bring_up(place, specs, host=on), home=place, scratch=scratch)
    except BaseException:
        # Of what did not come up as a whole nothing goes on.
        with suppress(PenstockError):
            bring_down(place)
        scratch.cleanup()
        raise
    atexit.register(system.close)
    return system


def connect(url: str, token: str) -> RunningSystem:
    """The system whose controller answers at ``url``; ``token`` is in the file of that name."""
    system = RunningSystem(Client(url, token))
    system.status()
    return system
