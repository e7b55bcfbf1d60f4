"""``penstock bench``: measurements of this machine, as ratios with goals.

The measurements are in ``penstock.bench.registry``, which has ``BENCHES``: by name, a function of
``quick`` (whether a run of about a minute is wanted), ``only`` (which of its cases) and ``peer``
(beside whom it is to be measured as well) that gives
``{"bench", "machine", "cases": [{"case", "value", "unit", "baseline", "ratio", "goal", "ok"}],
"ok"}``. Nothing else of it is used here.
"""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from penstock.cli.completion import bench_names
from penstock.errors import InputError, listed, suggestion

BENCH_EXAMPLES = """\
[bold]Examples[/bold]

penstock bench --quick                     everything, in short

penstock bench overhead --json             one measurement, for scripts

penstock bench join --only "600 s"         the cases whose names have this in them

penstock bench density --peer flink        beside Flink, where there is one
"""

ALL = "all"

Report = Mapping[str, Any]
Bench = Callable[[bool, str, str], Report]


def bench(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME|all]",
            help="What to measure.",
            autocompletion=bench_names,
            show_default=False,
        ),
    ] = ALL,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Measure for about a minute each: enough to see that it works."
        ),
    ] = False,
    only: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Measure only the cases whose names contain this, where they can be chosen.",
            show_default=False,
        ),
    ] = "",
    peer: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Measure the same on this beside it, where it is installed: flink, with density.",
            show_default=False,
        ),
    ] = "",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, or for all a list of them.")
    ] = False,
) -> None:
    """Measure this machine against the goals. Exit code 4 if one is missed."""
    reports = []
    for measure in chosen(name, benches()):
        reports.append(measure(quick, only, peer))
        if not json:
            typer.echo("\n".join(report_lines(reports[-1])))
    if json:
        found: object = reports if name == ALL else reports[0]
        typer.echo(json_text.dumps(found, indent=2))
    if not all(report["ok"] for report in reports):
        raise typer.Exit(4)


def benches() -> Mapping[str, Bench]:
    """The measurements there are, by name."""
    # Only now: they load what they measure.
    from penstock.bench.registry import BENCHES

    return BENCHES


def chosen(name: str, known: Mapping[str, Bench]) -> list[Bench]:
    """The measurements meant by ``name``."""
    if name == ALL:
        return list(known.values())
    if name not in known:
        hint = f"There are {listed([*known, ALL])}. {suggestion(name, [*known, ALL])}".strip()
        raise InputError(f"no benchmark {name}", hint=hint)
    return [known[name]]


def report_lines(report: Report) -> list[str]:
    """A report as a table of plain text."""
    rows = [
        (
            "✓" if case["ok"] else "✗",
            str(case["case"]),
            f"{_number(case['value'])} {case['unit']}".rstrip(),
            _compared(case),
            f"goal {case['goal']}" if case["goal"] else "",
        )
        for case in report["cases"]
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    cells = ([text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in rows)
    return [f"{report['bench']}", *(f" {'  '.join(row).rstrip()}" for row in cells)]


def _compared(case: Report) -> str:
    if case["baseline"] is None:
        return ""
    return f"{_number(case['ratio'])} of {_number(case['baseline'])}"


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
    return "?" if value is None else f"{value}"
