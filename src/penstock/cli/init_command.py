"""The command ``penstock init``: a small project that runs, to change into one's own."""

from __future__ import annotations

import json as json_text
from enum import StrEnum
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copyfile
from typing import Annotated

import typer

from penstock.cli.printing import JsonOption, print_json
from penstock.errors import InputError

INIT_EXAMPLES = """\
[bold]Examples[/bold]

penstock init                    smart meters, made up as they run

penstock init files --into hall  sensors in files, in the folder hall

penstock init kafka              from one topic into another
"""
_SCHEMA = "penstock.schema.json"


class Project(StrEnum):
    """The projects there are to begin with."""

    METERS = "meters"
    NETWORK = "network"
    KAFKA = "kafka"
    FILES = "files"


def init(
    project: Annotated[
        Project, typer.Argument(help="What to begin with.", show_default=True)
    ] = Project.METERS,
    into: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to put it; made if it is not there.")
    ] = Path(),
    json: JsonOption = False,
) -> None:
    """Write a small project that runs: a deployment file, its data, a schema for the editor.

    Nothing that is there already is changed.
    """
    written = write_project(project, into)
    if json:
        print_json({"project": str(project), "files": [str(path) for path in written]})
        return
    for path in written:
        print(f"written: {path}")
    print(f"next: penstock run {into / f'{project}.yaml'}")


def write_project(project: Project, folder: Path) -> list[Path]:
    """Writes the files of a project; raises, and writes none, if one of them is there."""
    from penstock.lang.deployment.json_schema import deployment_schema

    with as_file(files("penstock.cli") / "projects" / str(project)) as source:
        parts = sorted(path for path in source.rglob("*") if path.is_file())
        targets = {folder / path.relative_to(source): path for path in parts}
        there = [str(target) for target in targets if target.exists()]
        if there:
            raise InputError(
                f"{', '.join(there)} is there already",
                hint="Give another folder with --into, or move it away.",
            )
        try:
            for target, path in targets.items():
                target.parent.mkdir(parents=True, exist_ok=True)
                copyfile(path, target)
            schema = folder / _SCHEMA
            schema.write_text(json_text.dumps(deployment_schema(), indent=2), encoding="utf-8")
        except OSError as error:
            raise InputError(f"{folder} cannot be written to: {error.strerror}") from None
    return [*targets, schema]
