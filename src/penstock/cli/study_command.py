"""``penstock study``: a source's experiment, and how ours compares."""

from __future__ import annotations

import json as json_text
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.completion import study_names

if TYPE_CHECKING:
    from penstock.studies.report import Row, Say, StudyReport

STUDY_EXAMPLES = """\
[bold]Examples[/bold]

penstock study all --quick                 every study, in short

penstock study resilience --out results    CSV and SVG files beside the table

penstock study resilience --json           for scripts
"""


def study(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|all",
            help="Which study.",
            autocompletion=study_names,
            show_default=False,
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A run of less than a minute: fewer seeds.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, or for all a list of them.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write CSV and SVG files here.", show_default=False),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes to work in; results do not depend on it.")
    ] = os.cpu_count() or 1,
) -> None:
    """Repeat a source's experiment and compare; what does not agree is marked."""
    from penstock.studies.registry import ALL, named, study_called
    from penstock.studies.running import Processes
    from penstock.studies.writing import write

    reports = []
    for one in named(name):
        report = study_called(one)(quick, _say(one), Processes(workers))
        _say(one)("")
        reports.append(report)
        paths = write(report, out / one) if out is not None else ()
        if not json:
            typer.echo("\n".join([*report_lines(report), *(f"wrote {path}" for path in paths)]))
    if json:
        found = [report.as_dict() for report in reports]
        typer.echo(json_text.dumps(found if name == ALL else found[0], indent=2))


def _say(study: str) -> Say:
    """Shows progress on one line of a terminal; nothing elsewhere."""

    def say(what: str) -> None:
        if sys.stderr.isatty():
            text = f"{study}: {what}" if what else ""
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    return say


def report_lines(report: StudyReport) -> list[str]:
    """A report as a table of plain text."""
    rows = [("", "quantity", "source says", "we get", ""), *map(_cells, report.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = ([text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in rows)
    setup = [f" {report.setup}"] if report.setup else []
    return [report.study, *setup, *(f" {'  '.join(row).rstrip()}" for row in cells)]


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    source = "" if row.source is None else f"{row.source:.4g}"
    return "✓" if row.agrees else "✗", row.quantity, source, f"{row.ours:.4g}", row.note
