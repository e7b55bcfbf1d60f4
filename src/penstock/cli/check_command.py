"""The command ``penstock check``: is a deployment file right? Quick, and without Spark."""

from __future__ import annotations

import json as json_text
import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.errors import PenstockError

CHECK_EXAMPLES = """\
[bold]Examples[/bold]

penstock check ami.yaml              what run would refuse is said now

penstock check --json *.yaml         for a pipeline: every file, and what is wrong with it
"""


def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Deployment files.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say whether deployment files are right: names, columns, types, nodes, strategies, settings.

    Leaves with exit code 1 if one is not. Nothing is started and nothing is written.
    """
    told = {str(file): _problem(file) for file in files}
    if json:
        answer = [{"file": file, "ok": not what, "error": what} for file, what in told.items()]
        print(json_text.dumps(answer, indent=2))
    else:
        for file, what in told.items():
            print(what or f"{file} is right", file=sys.stderr if what else sys.stdout)
    if any(told.values()):
        raise typer.Exit(1)


def _problem(file: Path) -> str:
    """What is wrong with a file; nothing if it is right."""
    from penstock.app.run_plan import RunRequest, plan_run
    from penstock.balance.settings import BalanceSettings
    from penstock.device.splitting import served

    try:
        plan = plan_run(RunRequest(file))
        served(plan.deployment)
        BalanceSettings.checked(plan.deployment.balance)
    except PenstockError as error:
        return str(error) if error.place else f"{file}: {error}"
    return ""
