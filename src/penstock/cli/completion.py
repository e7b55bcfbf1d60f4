"""Names that the shell can complete."""

from __future__ import annotations

from pathlib import Path

import typer

from penstock.errors import PenstockError


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
