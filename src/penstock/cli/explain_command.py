"""``penstock explain``: what a deployment does, without running it."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.completion import query_names
from penstock.cli.printing import JsonOption
from penstock.cli.target import HomeOption, connected
from penstock.errors import InputError, PenstockError, UsageError

if TYPE_CHECKING:
    from penstock.control.client import Client
    from penstock.model.estimates import OperatorEstimate
    from penstock.model.network import Deployment, Network

EXPLAIN_EXAMPLES = """\
[bold]Examples[/bold]

penstock explain ami.yaml                           streams, operators, fragments, queries

penstock explain ami.yaml --query heavy_homes       only what this query needs

penstock explain ami.yaml --format mermaid > a.mmd  a flowchart

penstock explain top.sql --over ami.yaml            one query over the streams of a file

penstock explain heavy_homes                        a running query: what it reads of whom

penstock explain move 3                             why the running system moved something
"""


class Format(StrEnum):
    """The forms in which a deployment can be printed."""

    TEXT = "text"
    MERMAID = "mermaid"
    JSON = "json"
    SQL = "sql"
    YAML = "yaml"
    PYTHON = "python"


def explain(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|NAME|move",
            help="The deployment file, or one query as .sql; the name of a running query; or move "
            "and a number.",
            show_default=False,
        ),
    ],
    number: Annotated[
        int | None,
        typer.Argument(metavar="[N]", help="The number of a move.", show_default=False, min=1),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show only this query and what it needs.",
            autocompletion=query_names,
            show_default=False,
        ),
    ] = None,
    over: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The deployment file whose streams and results a .sql file reads.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        Format,
        typer.Option(help="How to print it; sql, yaml and python read back as the same thing."),
    ] = Format.TEXT,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a deployment does and which operators run together. Nothing is started.

    Files, folders and Python functions that it names and that are not there are told at the end.

    penstock explain NAME shows what a running query computes itself, and what it reads of whom;
    penstock explain move N says why a running system moved something.
    """
    if json:
        format = Format.JSON
    if number is not None:
        _explain_move(file, number, format, home)
        return
    client = _system_of(file, home)
    if client is not None:
        _explain_running(client, str(file), format)
        return
    from penstock.cli.explaining import only

    deployment = _read(file, over)
    if query is not None:
        deployment = only(deployment, query)
    typer.echo(_PRINTERS[format](deployment, file).rstrip("\n"))
    if format is Format.TEXT:
        _check_parts(deployment, file)


def _system_of(file: Path, home: Path | None) -> Client | None:
    """The system that may know what looks like a name and is not a file; None without one."""
    if file.suffix or len(file.parts) != 1 or file.exists():
        return None
    try:
        return connected(home)
    except PenstockError:
        return None  # What is wrong with it as a file is said then.


def _explain_running(client: Client, name: str, format: Format) -> None:
    from penstock.cli.sharing_text import graph_lines
    from penstock.control.api_model import plain

    graph = client.graph(name)
    if format is Format.JSON:
        typer.echo(json_text.dumps(plain(graph), indent=2))
        return
    if format is not Format.TEXT:
        raise UsageError(f"a running query is not printed as {format}", hint="Use text or json.")
    for line in graph_lines(graph):
        typer.echo(line)


def _read(file: Path, over: Path | None) -> Deployment:
    from penstock.lang.deployment import offered_streams, parse_single_query, read_deployment
    from penstock.lang.files import text_of

    if file.suffix != ".sql":
        if over is not None:
            raise UsageError(
                "--over goes with a .sql file", hint="A deployment file has its own streams."
            )
        return read_deployment(file)
    if over is None:
        raise UsageError(
            f"{file} does not say what its streams are",
            hint=f"Name the file that does: penstock explain {file} --over FILE.",
        )
    streams = offered_streams(read_deployment(over).network)
    return parse_single_query(file.stem, text_of(file), str(file), streams, running_in=over.name)


def _check_parts(deployment: Deployment, file: Path) -> None:
    from penstock.app.missing import missing_parts

    missing = missing_parts(deployment.network)
    if missing:
        raise InputError(
            f"{file} names what is not there: {'; '.join(missing)}",
            hint="Check the names and where they are looked for.",
        )


def _explain_move(what: Path, number: int, format: Format, home: Path | None) -> None:
    from penstock.cli.explaining_move import move_text
    from penstock.control.api_model import plain

    if what != Path("move"):
        raise UsageError(
            f"penstock explain {what} {number} has a number too many",
            hint="Write penstock explain FILE, or penstock explain move N.",
        )
    if format not in (Format.TEXT, Format.JSON):
        raise UsageError(
            f"a move cannot be explained as {format}", hint="Choose --format text or json."
        )
    found = connected(home).explain(number)
    is_text = format is Format.TEXT
    typer.echo(move_text(found) if is_text else json_text.dumps(plain(found), indent=2))


def _text(deployment: Deployment, file: Path) -> str:
    from penstock.cli.explaining import fragments_text
    from penstock.device.splitting import served
    from penstock.lang.explain import explain_text

    network, on_server = deployment.network, served(deployment).network
    parts = explain_text(network, _costs(network), deployment.devices), fragments_text(on_server)
    hint = f"as a flowchart: penstock explain {file} --format mermaid"
    return "\n".join((*parts, hint))


def _costs(network: Network) -> Mapping[str, OperatorEstimate]:
    """The expected cost of each operator, from rates that generators keep and measured costs."""
    from penstock.feeds.rates import known_rates
    from penstock.load.costs import measured_costs
    from penstock.load.estimate import estimate

    return estimate(network, known_rates(network), measured_costs())


def _mermaid(deployment: Deployment, file: Path) -> str:
    from penstock.lang.explain import explain_mermaid

    return explain_mermaid(deployment.network)


def _json(deployment: Deployment, file: Path) -> str:
    from penstock.app.missing import missing_parts
    from penstock.cli.explaining import fragment_records
    from penstock.lang.explain import explain_dict

    network = deployment.network
    record = {"deployment": deployment.name, **explain_dict(network, _costs(network))}
    parts = {"fragments": fragment_records(network), "missing": missing_parts(network)}
    return json_text.dumps(record | parts, indent=2)


def _sql(deployment: Deployment, file: Path) -> str:
    from penstock.cli.explaining import queries_sql

    return queries_sql(deployment.network)


def _yaml(deployment: Deployment, file: Path) -> str:
    from penstock.lang.deployment import deployment_yaml

    return deployment_yaml(deployment, file.parent.absolute())


def _python(deployment: Deployment, file: Path) -> str:
    from penstock.lang.builder import python_code

    return python_code(deployment)


_PRINTERS: Mapping[Format, Callable[[Deployment, Path], str]] = {
    Format.TEXT: _text,
    Format.MERMAID: _mermaid,
    Format.JSON: _json,
    Format.SQL: _sql,
    Format.YAML: _yaml,
    Format.PYTHON: _python,
}
