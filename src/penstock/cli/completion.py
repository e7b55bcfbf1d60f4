"""Names that the shell can complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.control.client import Client

_PATIENCE_S = 2.0
"""Whoever waits for a completion waits at the keyboard."""


def query_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The queries of the file that was typed, as far as it can be read."""
    from penstock.lang.deployment import read_deployment

    # An option without its value ends the parsing before arguments are given their names.
    file = ctx.params.get("file") or next(iter(ctx.args), None)
    if file is None:
        return []
    try:
        names = [query.name for query in read_deployment(Path(file)).network.queries]
    except PenstockError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def bench_names(incomplete: str) -> list[str]:
    """The benchmarks there are."""
    from penstock.cli.bench_command import ALL, benches

    return [name for name in (ALL, *benches()) if name.startswith(incomplete)]


def study_names(incomplete: str) -> list[str]:
    """The studies there are."""
    from penstock.studies.registry import ALL, STUDIES

    return [name for name in (ALL, *STUDIES) if name.startswith(incomplete)]


def fragment_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The fragments and intakes of the running system."""
    return _running(
        ctx, incomplete, lambda client: (fragment.name for fragment in client.fragments())
    )


def node_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The nodes of the running system."""
    return _running(ctx, incomplete, lambda client: (node.name for node in client.nodes()))


def log_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Whose log can be shown."""
    return [
        *(name for name in ("controller",) if name.startswith(incomplete)),
        *node_names(ctx, incomplete),
    ]


def submission_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """What was submitted to the running system."""
    return _running(ctx, incomplete, lambda client: (query.name for query in client.queries()))


def stream_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The queries and streams of the running system whose rows can be shown."""
    return _running(
        ctx, incomplete, lambda client: (fragment.name for fragment in client.fragments())
    )


def context_names(incomplete: str) -> list[str]:
    """The systems on other machines that have a name."""
    from penstock.cli.contexts import contexts

    try:
        return [name for name in contexts() if name.startswith(incomplete)]
    except PenstockError:
        return []


def _running(
    ctx: typer.Context, incomplete: str, names: Callable[[Client], Iterable[str]]
) -> list[str]:
    """Names that begin like this; none where no system answers."""
    from penstock.cli.target import connected

    try:
        given = {name: ctx.params.get(name) for name in ("url", "token", "context")}
        told = {name: value for name, value in given.items() if value is not None}
        with closing(connected(ctx.params.get("home"), _PATIENCE_S, told)) as client:
            return [name for name in names(client) if name.startswith(incomplete)]
    except PenstockError:
        return []
