"""The command ``penstock``: its commands, and the one place where errors become exit codes.

Exit codes: 0 fine, 1 the user's input, 2 usage, 3 something needed could not be reached or is
missing, 4 it failed while running. Only what ``--help`` needs is imported here.
"""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from penstock import __version__
from penstock.cli.admit_command import ADMIT_EXAMPLES, admit
from penstock.cli.balance_command import BALANCE_EXAMPLES, balance
from penstock.cli.bench_command import BENCH_EXAMPLES, bench
from penstock.cli.check_command import CHECK_EXAMPLES, check
from penstock.cli.device_command import DEVICE_EXAMPLES, device
from penstock.cli.doctor_command import DOCTOR_EXAMPLES, doctor
from penstock.cli.explain_command import EXPLAIN_EXAMPLES, explain
from penstock.cli.failures import reported
from penstock.cli.plan_command import PLAN_EXAMPLES, plan
from penstock.cli.power_command import POWER_EXAMPLES, power
from penstock.cli.rows_command import ROWS_EXAMPLES, rows
from penstock.cli.run_command import RUN_EXAMPLES, RunCommand, run
from penstock.cli.simulate_command import SIMULATE_EXAMPLES, simulate
from penstock.cli.study_command import STUDY_EXAMPLES, study
from penstock.cli.system_commands import (
    UP_EXAMPLES,
    dashboard,
    down,
    drop,
    events,
    logs,
    ls,
    move,
    nodes,
    status,
    submit,
    up,
)
from penstock.cli.transfers_command import TRANSFERS_EXAMPLES, transfers

_EXIT_CODES = (
    "Exit codes: 0 fine, 1 your input, 2 usage, 3 something needed is missing or could not be "
    "reached, 4 it failed while running."
)

app = typer.Typer(
    name="penstock",
    help="Continuous queries on Spark: described in one file, run, watched and explained.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=RunCommand, epilog=RUN_EXAMPLES)(run)
app.command(epilog=CHECK_EXAMPLES)(check)
app.command(epilog=EXPLAIN_EXAMPLES)(explain)
app.command(epilog=PLAN_EXAMPLES)(plan)
app.command(epilog=POWER_EXAMPLES)(power)
app.command(epilog=DEVICE_EXAMPLES)(device)
app.command(epilog=ADMIT_EXAMPLES)(admit)
app.command(epilog=DOCTOR_EXAMPLES)(doctor)
app.command(epilog=SIMULATE_EXAMPLES)(simulate)
app.command(epilog=TRANSFERS_EXAMPLES)(transfers)
app.command(epilog=STUDY_EXAMPLES)(study)
app.command(epilog=BENCH_EXAMPLES)(bench)
app.command(epilog=UP_EXAMPLES)(up)
for _command in (dashboard, submit, ls, status, nodes, move, events, drop, logs, down):
    app.command(epilog=UP_EXAMPLES)(_command)
app.command(epilog=BALANCE_EXAMPLES)(balance)
app.command(epilog=ROWS_EXAMPLES)(rows)


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
    try:
        app(prog_name="penstock")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        sys.exit(reported(error))
