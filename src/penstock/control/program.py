"""A system in a Python program: started or connected to, given flows, and asked for results."""

from __future__ import annotations

import atexit
import sys
import tempfile
import time
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
from penstock.lang.notebook import html_heading, html_table, is_notebook
from penstock.model.beginnings import checked_start
from penstock.model.durations import duration_us
from penstock.model.measurements import FragmentStatus
from penstock.model.network import Deployment, NodeSpec

_SHOWN_S, _SHOWN_ROWS = 60.0, 10
_NO_ROWS = "<p>no rows in the last minute</p>"

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class RunningQuery:
    """A query of a running system."""

    name: str
    client: Client

    def __repr__(self) -> str:
        return f"<RunningQuery {self.name} at {self.client.url}>"

    def _repr_html_(self) -> str:
        """How it does and its newest rows, for notebooks."""
        mine = [fragment for fragment in self.client.fragments() if fragment.name == self.name]
        told = ", ".join(
            f"{fragment.state} on {fragment.node or 'no node yet'}" for fragment in mine
        )
        since_s = time.time() - _SHOWN_S
        rows = self.client.rows(self.name, None, since_s, 0.0).rows[-_SHOWN_ROWS:]
        heads = list(rows[0]) if rows else []
        shown = html_table(heads, (tuple(row.values()) for row in rows)) if rows else _NO_ROWS
        return html_heading(self.name, told or "not there any more") + shown

    def results(self, timeout: str | None = None, groups: str | None = None) -> Iterator[pa.Table]:
        """Its rows as they come, from the oldest that are kept.

        Ends when the query has, or when nothing has come for as long as ``timeout``. Of a query
        whose results are kept in groups, ``groups`` names those to read, as ``"0-29"``.
        """
        patience_s = None if timeout is None else duration_us(timeout) / 1e6
        return self.client.results(self.name, patience_s, groups)

    def to_pandas(self, timeout: str | None = None) -> pd.DataFrame:
        """All its rows as a DataFrame, once it has ended or nothing has come for ``timeout``."""
        tables = list(self._gathered(timeout))
        return (pa.concat_tables(tables) if tables else pa.table({})).to_pandas()

    def _gathered(self, timeout: str | None) -> Iterator[pa.Table]:
        """Its rows; a notebook is told how many there are so far."""
        count, is_seen = 0, is_notebook()
        for table in self.results(timeout):
            count += table.num_rows
            if is_seen:
                print(f"\r{self.name}: {count:,} rows", end="", file=sys.stderr, flush=True)
            yield table
        if is_seen:
            print(file=sys.stderr)

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

    def _repr_html_(self) -> str:
        """Nodes and fragments as they are now, for notebooks."""
        found = self.client.system()
        nodes = (
            (node.name, node.state, f"{node.utilisation:.0%} of {node.cores}", ", ".join(node.runs))
            for node in found.nodes
        )
        fragments = (
            (fragment.name, fragment.node or "", fragment.state, *_measured(fragment.status))
            for fragment in found.fragments
        )
        return "".join(
            (
                html_heading("Penstock", self.client.url),
                html_table(("node", "state", "cpu", "runs"), nodes),
                html_table(("fragment", "on", "state", "rows/s", "rows out", "unread"), fragments),
            )
        )

    @overload
    def submit(
        self,
        work: Flow,
        /,
        *,
        max_latency: str | None = None,
        start: str = "now",
        share: bool = True,
        force: bool = False,
    ) -> RunningQuery: ...

    @overload
    def submit(
        self,
        work: Deployment,
        /,
        *,
        max_latency: str | None = None,
        start: str = "now",
        share: bool = True,
    ) -> RunningDeployment: ...

    @overload
    def submit(
        self,
        work: Flow,
        /,
        *more: Flow,
        max_latency: str | None = None,
        start: str = "now",
        share: bool = True,
    ) -> RunningDeployment: ...

    def submit(
        self,
        work: Flow | Deployment,
        /,
        *more: Flow,
        max_latency: str | None = None,
        start: str = "now",
        share: bool = True,
        force: bool = False,
    ) -> RunningQuery | RunningDeployment:
        """Runs a flow that has a name, with all it reads; or several, or a deployment, as one.

        A stream from outside that runs already is shared if it is described in the same way. What
        is read of streams that run already counts from ``start`` on: ``now``, ``oldest`` for what
        is kept of them, or ``start`` for all of their rows. What runs already is read of those
        who compute it, unless it is not to ``share`` anything. What would break limits is refused,
        unless it is taken in by ``force``.
        """
        if isinstance(work, Deployment):
            self._submit(work, work.name, max_latency, start, share, force)
            return self._running(work)
        made = deployment(work, *more)
        name = made.network.queries[-1].name
        self._submit(made, name, max_latency, start, share, force)
        return self._running(made, name) if more else RunningQuery(name, self.client)

    def _submit(
        self,
        made: Deployment,
        name: str,
        max_latency: str | None,
        start: str,
        share: bool,
        force: bool,
    ) -> None:
        text = deployment_yaml(made, show_passwords=True)
        latency_us = None if max_latency is None else duration_us(max_latency)
        folder = str(Path.cwd())
        self.client.submit(
            name, "yaml", text, folder, latency_us, checked_start(start), share, force
        )

    def _running(self, made: Deployment, name: str | None = None) -> RunningDeployment:
        names = [query.name for query in made.network.queries]
        queries = {query: RunningQuery(query, self.client) for query in names}
        return RunningDeployment(name or made.name, queries, self.client)

    def status(self) -> SystemAnswer:
        """Nodes, queries, fragments and the latest moves."""
        return self.client.system()


def _measured(status: FragmentStatus | None) -> tuple[str, str, str]:
    if status is None:
        return "", "", ""
    counted = (status.rows_in_per_s, status.rows_out, status.backlog_rows)
    return f"{counted[0]:,.0f}", f"{counted[1]:,}", f"{counted[2]:,}"


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


def _say(text: str) -> None:
    """Tells a notebook how it goes on; a program decides itself what it prints."""
    if is_notebook():
        print(text, file=sys.stderr, flush=True)


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
        system = LocalSystem(bring_up(place, specs, host=on, say=_say), home=place, scratch=scratch)
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
