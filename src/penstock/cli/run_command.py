"""``penstock run``: what can be typed, and what it becomes."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from penstock.app.pace import Speed
from penstock.cli.failures import LOG_FOLDER
from penstock.errors import InputError, UsageError
from penstock.model.durations import duration_us

if TYPE_CHECKING:
    from penstock.app.run_plan import RunRequest
    from penstock.app.snapshots import Presenter

UI_PORT = 4040

RUN_EXAMPLES = """\
[bold]Examples[/bold]

penstock run ami.yaml                      until its inputs end, or Ctrl-C

penstock run ami.yaml --speed max --fresh  start over, as fast as possible

penstock run ami.yaml --for 30s --json     half a minute, then one JSON object
"""


class RunCommand(TyperCommand):
    """Lets ``--spark-ui`` stand alone, for its usual port."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_default_port(args))


def with_default_port(args: list[str]) -> list[str]:
    """The arguments with a port behind every bare ``--spark-ui``.

    >>> with_default_port(["--spark-ui", "ami.yaml"]), with_default_port(["--spark-ui", "4050"])
    (['--spark-ui=4040', 'ami.yaml'], ['--spark-ui', '4050'])
    """
    following = [*args[1:], ""][: len(args)]
    return [
        f"--spark-ui={UI_PORT}" if argument == "--spark-ui" and not _is_number(after) else argument
        for argument, after in zip(args, following, strict=True)
    ]


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The deployment file.", show_default=False)
    ],
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to keep what must not be forgotten. "
            "[dim]default: .penstock/NAME beside the file[/dim]",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Forget earlier runs, remove their results, and start over."),
    ] = False,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="DURATION", help="Stop after this long, for example 30s or 2min."
        ),
    ] = None,
    speed: Annotated[
        str | None,
        typer.Option(
            metavar="max|N",
            help="Play generated and replayed streams at this speed: N seconds in a second, "
            "or as fast as possible.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print nothing but one JSON object at the end.")
    ] = False,
    spark_ui: Annotated[
        int | None,
        typer.Option(
            metavar="[PORT]",
            help=f"Show Spark's own pages on this port. [dim]alone: {UI_PORT}[/dim]",
            show_default=False,
        ),
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Processor cores to use. [dim]default: those of the nodes in the file[/dim]",
            show_default=False,
        ),
    ] = None,
    no_live: Annotated[
        bool, typer.Option("--no-live", help="Print plain lines instead of a live table.")
    ] = False,
) -> None:
    """Run a deployment: its streams, its queries, its results.

    A run goes on where the last one stopped. Results go where the file says; those for the
    terminal are shown here, or printed row by row where this is not a terminal.
    """
    from penstock.app.run_plan import RunRequest

    request = RunRequest(
        file=file,
        state=state,
        fresh=fresh,
        for_us=None if for_ is None else _length_us(for_),
        speed=None if speed is None else Speed.parse(speed),
        ui_port=spark_ui,
        cores=cores,
    )
    _carry_out(request, json, no_live)


def _length_us(written: str) -> int:
    try:
        length_us = duration_us(written)
    except InputError as error:
        raise UsageError(f"--for {error.what}", hint=error.hint) from None
    if length_us <= 0:
        raise UsageError(f"--for {written} is no time at all", hint="Give for example --for 30s.")
    return length_us


def _carry_out(request: RunRequest, json: bool, no_live: bool) -> None:
    from penstock.app.outcome import check_read
    from penstock.app.run_plan import plan_run
    from penstock.app.runner import run as run_plan
    from penstock.app.signals import StopRequest
    from penstock.lang.deployment import read_deployment

    deployment = read_deployment(request.file)
    if deployment.devices is not None:
        from penstock.cli.device_runner import run_for_devices

        with StopRequest(os.dup(2)) as stop:
            run_for_devices(request, deployment, stop, json)
        return
    presenter = _presenter(json, no_live)
    plan = plan_run(request)
    LOG_FOLDER.set(plan.folder / "log")
    with StopRequest(os.dup(2)) as stop, suppress(BrokenPipeError):
        outcome = run_plan(plan, request, presenter, stop)
        presenter.end(outcome)
        check_read(outcome)


def _presenter(json: bool, no_live: bool) -> Presenter:
    from rich.console import Console

    from penstock.app.output import own_copy
    from penstock.cli.presenters import JsonPresenter, LivePresenter, PlainPresenter

    # Ours alone: what others print goes to a log meanwhile.
    out = Console(file=own_copy(sys.stdout), highlight=False)
    if json:
        return JsonPresenter(out)
    if out.is_terminal and not no_live:
        return LivePresenter(out)
    return PlainPresenter(out, Console(file=own_copy(sys.stderr), highlight=False))
