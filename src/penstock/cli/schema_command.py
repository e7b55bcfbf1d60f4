"""The command ``penstock schema``: what editors know deployment files by."""

from __future__ import annotations

import json as json_text
from typing import Annotated

import typer

SCHEMA_EXAMPLES = """\
[bold]Examples[/bold]

penstock schema > penstock.schema.json      then write as the first line of a deployment file:

\\# yaml-language-server: $schema=penstock.schema.json
"""


def schema(
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON; it always does.", hidden=True)
    ] = False,
) -> None:
    """Print the JSON Schema of deployment files, so that editors complete and check them."""
    from penstock.lang.deployment.json_schema import deployment_schema

    typer.echo(json_text.dumps(deployment_schema(), indent=2))
