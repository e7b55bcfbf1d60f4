"""The command ``penstock``: its commands, and the one place where errors become exit codes.

Exit codes: 0 fine, 1 the user's input, 2 usage, 3 something needed could not be reached or is
missing, 4 it failed while running. Only what ``--help`` needs is imported here.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from penstock import __version__
from penstock.cli.admit_command import ADMIT_EXAMPLES, admit
from penstock.cli.balance_command import BALANCE_EXAMPLES, balance
from penstock.cli.bench_command import BENCH_EXAMPLES, bench
from penstock.cli.check_command import CHECK_EXAMPLES, check
from penstock.cli.context_command import context_app
from penstock.cli.device_command import DEVICE_EXAMPLES, device
from penstock.cli.doctor_command import DOCTOR_EXAMPLES, doctor
from penstock.cli.explain_command import EXPLAIN_EXAMPLES, explain
from penstock.cli.failures import reported, reported_as_json
from penstock.cli.following_commands import EVENTS_EXAMPLES, LOGS_EXAMPLES, events, logs
from penstock.cli.groups import group_of, position_of
from penstock.cli.init_command import INIT_EXAMPLES, init
from penstock.cli.move_command import move
from penstock.cli.plan_command import PLAN_EXAMPLES, plan
from penstock.cli.power_command import POWER_EXAMPLES, power
from penstock.cli.rows_command import ROWS_EXAMPLES, rows
from penstock.cli.run_command import RUN_EXAMPLES, RunCommand, run
from penstock.cli.schema_command import SCHEMA_EXAMPLES, schema
from penstock.cli.simulate_command import SIMULATE_EXAMPLES, simulate
from penstock.cli.status_command import nodes, status
from penstock.cli.study_command import STUDY_EXAMPLES, study
from penstock.cli.submitting_commands import drop, ls, submit
from penstock.cli.system_commands import dashboard, down, up
from penstock.cli.system_examples import SYSTEM_EXAMPLES
from penstock.cli.target import anywhere
from penstock.cli.transfers_command import TRANSFERS_EXAMPLES, transfers

_EXIT_CODES = (
    "Exit codes: 0 fine, 1 your input, 2 usage, 3 something needed is missing or could not be "
    "reached, 4 it failed while running."
)


class GroupedCommands(TyperGroup):
    """Commands in the order in which people need them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=position_of)


app = typer.Typer(
    name="penstock",
    help="Continuous queries on Spark: described in one file, run, watched and explained.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    cls=GroupedCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_ALONE: dict[Callable[..., None], str] = {
    init: INIT_EXAMPLES,
    check: CHECK_EXAMPLES,
    schema: SCHEMA_EXAMPLES,
    plan: PLAN_EXAMPLES,
    power: POWER_EXAMPLES,
    device: DEVICE_EXAMPLES,
    admit: ADMIT_EXAMPLES,
    doctor: DOCTOR_EXAMPLES,
    simulate: SIMULATE_EXAMPLES,
    transfers: TRANSFERS_EXAMPLES,
    study: STUDY_EXAMPLES,
    bench: BENCH_EXAMPLES,
    up: SYSTEM_EXAMPLES["up"],
    down: SYSTEM_EXAMPLES["down"],
}
"""The commands of this machine."""
_OF_A_SYSTEM: dict[Callable[..., None], str] = {
    **{
        command: SYSTEM_EXAMPLES[command.__name__]
        for command in (dashboard, submit, ls, status, nodes, move, drop)
    },
    explain: EXPLAIN_EXAMPLES,
    rows: ROWS_EXAMPLES,
    balance: BALANCE_EXAMPLES,
    events: EVENTS_EXAMPLES,
    logs: LOGS_EXAMPLES,
}
"""The commands that ask a controller, wherever it is."""


def _add(command: Callable[..., None], examples: str, kind: type[TyperCommand]) -> None:
    panel = group_of(command.__name__)
    app.command(cls=kind, epilog=examples, rich_help_panel=panel)(command)


_add(run, RUN_EXAMPLES, RunCommand)
for _command, _examples in _ALONE.items():
    _add(_command, _examples, TyperCommand)
for _command, _examples in _OF_A_SYSTEM.items():
    _add(anywhere(_command), _examples, TyperCommand)
app.add_typer(context_app, name="context", rich_help_panel=group_of("context"))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and leave."
        ),
    ] = False,
) -> None:
    return None


def main() -> None:
    """Runs the command line of this process and leaves it with the right exit code."""
    # Like other commands, end quietly when nobody reads the output any more.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    as_json = "--json" in sys.argv
    try:
        # As JSON even what was typed wrong is told by us.
        sys.exit(app(prog_name="penstock", standalone_mode=not as_json))
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        sys.exit(reported_as_json(error) if as_json else reported(error))
