"""``penstock study``: a source's experiment, and how ours compares."""

from __future__ import annotations

import json as json_text
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.app.output import diverted
from penstock.cli.completion import study_names
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.studies.report import Row, Runner, Say, StudyReport

STUDY_EXAMPLES = """\
[bold]Examples[/bold]

penstock study all --quick                 every study, in short

penstock study resilience --out results    CSV and SVG files beside the table

penstock study resilience --json           for scripts

penstock study all --spark spark://m:7077  on a cluster, with the same results

[bold]Exit codes[/bold]

0 when the study ran, whether ours and the source agree or not: the table and the line below it
say so. With --strict, 4 if anything differs.
"""

_DIFFERS = 4


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
        bool, typer.Option("--quick", help="A run of about a minute: fewer seeds, less time.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, or for all a list of them.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write CSV and SVG files here.", show_default=False),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes to work in; results do not depend on it. Default: one per processor.",
            show_default=False,
        ),
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option(
            metavar="MASTER",
            help="Spread the points over a Spark cluster instead: local[N], "
            "local-cluster[N,CORES,MEGABYTES] or spark://HOST:PORT. Its machines need this version "
            "of penstock. Results are the same.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Leave with exit code 4 if ours and the source differ.")
    ] = False,
) -> None:
    """Repeat a source's experiment and compare; what does not agree is marked."""
    from penstock.studies.registry import ALL, named

    names = named(name)
    if workers is not None and spark is not None:
        raise UsageError(
            f"--workers {workers} and --spark {spark} exclude each other",
            hint="A cluster uses all the cores it has.",
        )
    with _runner(workers, spark, _say(name)) as run:
        reports = [_reported(study, quick, run, out, shown=not json) for study in names]
    if json:
        found = [report.as_dict() for report in reports]
        typer.echo(json_text.dumps(found if name == ALL else found[0], indent=2))
    if strict and not all(report.agrees for report in reports):
        raise typer.Exit(_DIFFERS)


def _reported(study: str, quick: bool, run: Runner, out: Path | None, shown: bool) -> StudyReport:
    from penstock.studies.registry import study_called
    from penstock.studies.writing import write

    say = _say(study)
    try:
        report = study_called(study)(quick, say, run)
    finally:
        say("")
    paths = write(report, out / study) if out is not None else ()
    if shown:
        typer.echo("\n".join([*report_lines(report), *(f"wrote {path}" for path in paths)]))
    return report


@contextmanager
def _runner(workers: int | None, master: str | None, say: Say) -> Iterator[Runner]:
    """Processes of this machine, or a cluster while it is needed."""
    if master is None:
        from penstock.studies.running import Processes

        yield Processes(workers or os.cpu_count() or 1)
        return
    from penstock.spark.masters import checked
    from penstock.spark.spreading import cluster

    checked(master)
    folder = Path(tempfile.mkdtemp(prefix="penstock-study-"))
    log = folder / "spark.log"
    with ExitStack() as opened:
        say("starting Spark")
        try:
            # What Java has to say belongs neither into a table nor into a JSON object.
            with diverted(1, log), diverted(2, log):
                run = opened.enter_context(cluster(master, log))
        finally:
            say("")
        yield run
    # Kept only if something went wrong: the error then says where it is.
    shutil.rmtree(folder, ignore_errors=True)


def _say(study: str) -> Say:
    """Shows progress on one line of a terminal; nothing elsewhere."""

    def say(what: str) -> None:
        if sys.stderr.isatty():
            text = f"{study}: {what}" if what else ""
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    return say


def report_lines(report: StudyReport) -> list[str]:
    """A report as a table of plain text."""
    rows = [("", "quantity", "source says", "agrees if", "we get", ""), *map(_cells, report.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = ([text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in rows)
    setup = [f" {report.setup}"] if report.setup else []
    table = (f" {'  '.join(row).rstrip()}" for row in cells)
    return [report.study, *setup, *table, f" {summary(report)}"]


def summary(report: StudyReport) -> str:
    """Whether ours and the source agree, in one line."""
    differing = sum(not row.agrees for row in report.rows)
    return f"{differing} of {len(report.rows)} differ" if differing else "all agree"


def _cells(row: Row) -> tuple[str, ...]:
    source = "" if row.source is None else f"{row.source:.4g}"
    mark = "✓" if row.agrees else "✗"
    return mark, row.quantity, source, bounds(row.low, row.high), f"{row.ours:.4g}", row.note


def bounds(low: float | None, high: float | None) -> str:
    """Within which ours counts as agreeing.

    >>> bounds(0.5, 1.0), bounds(None, 0.7), bounds(1.5, None), bounds(None, None)
    ('0.5 to 1', '<= 0.7', '>= 1.5', '')
    """
    if low is not None and high is not None:
        return f"{low:.4g} to {high:.4g}"
    if low is not None:
        return f">= {low:.4g}"
    return "" if high is None else f"<= {high:.4g}"
