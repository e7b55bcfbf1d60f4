"""``penstock doctor``: what this machine has and lacks, with the fix."""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.errors import UnreachableError

if TYPE_CHECKING:
    from penstock.cli.checks import Check

DOCTOR_EXAMPLES = """\
[bold]Examples[/bold]

penstock doctor                            each check, with what to do about it

penstock doctor --json | jq .ok            for scripts

penstock doctor --internals                what is used of Spark's inside, and what for
"""

_MARKS = {"fine": ("✓", "green"), "note": ("!", "yellow"), "missing": ("✗", "red")}


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    internals: Annotated[
        bool,
        typer.Option(
            "--internals", help="Show what is used of Spark's inside, and what for; check nothing."
        ),
    ] = False,
) -> None:
    """Check this machine: Java, memory, disk, ports. Exit code 3 if something needed is missing."""
    if internals:
        from penstock.spark.jvm.internals import INTERNALS

        text = (
            json_text.dumps(INTERNALS, indent=2) if json else "\n".join(internals_lines(INTERNALS))
        )
        typer.echo(text)
        return
    from penstock.cli.checks import checks, is_fit
    from penstock.cli.machine import machine_facts

    found = checks(machine_facts(Path.cwd()))
    if json:
        typer.echo(json_text.dumps(record(found), indent=2))
    else:
        _print(found)
    if not is_fit(found):
        raise typer.Exit(UnreachableError.exit_code)


def internals_lines(used: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Every purpose, and the classes for it.

    >>> internals_lines({"to stop a query at once": ("a.Query",)})
    ['to stop a query at once', '  a.Query']
    """
    return [line for what, names in used.items() for line in (what, *(f"  {n}" for n in names))]


def record(found: tuple[Check, ...]) -> dict[str, object]:
    """The checks as plain values: ``ok``, and ``checks`` with name, verdict, found and fix."""
    from penstock.cli.checks import is_fit

    return {"ok": is_fit(found), "checks": [asdict(check) for check in found]}


def _print(found: tuple[Check, ...]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for line in lines(found):
        console.print(line, soft_wrap=True)


def lines(found: tuple[Check, ...]) -> list[str]:
    """A line for each check, one more for its fix, and the conclusion, with markup."""
    from rich.markup import escape

    from penstock.cli.checks import is_fit

    width = max(len(check.name) for check in found)
    shown = []
    for check in found:
        mark, colour = _MARKS[check.verdict]
        shown.append(f"[{colour}]{mark}[/] {check.name:{width}}  {escape(check.found)}")
        if check.fix:
            shown.append(f"  {'':{width}}  [dim]{escape(check.fix)}[/]")
    good = "this machine is ready" if is_fit(found) else "something needed is missing, see ✗"
    return [*shown, "", good]
