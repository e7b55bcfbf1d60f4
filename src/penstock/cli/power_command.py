"""``penstock power``: what the server runs, what the devices run, and what that costs them."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from penstock.power.plan import PlanComparison
    from penstock.power.problem import PowerProblem

POWER_EXAMPLES = """\
[bold]Examples[/bold]

penstock power phones.yaml                           every algorithm, and BOSe's plan in full

penstock power phones.yaml --algorithm server-ops    another plan in full

penstock power phones.yaml --figure energy.svg       energies and the cycle on the air, drawn

penstock power phones.json --json                    everything, for scripts

penstock power portfolio.yaml --table portfolio=mine.csv    a deployment, measured over a sample
"""


def power(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A problem: broadcast, sources, devices, queries; YAML or JSON. "
            "Or a deployment with devices.",
            show_default=False,
        ),
    ],
    algorithm: Annotated[
        str, typer.Option(metavar="NAME", help="Whose plan to show in full.")
    ] = "bose",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Draw the energies, and the cycle as it goes over the air.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="A table that devices have, to measure a deployment with.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Decide which operators run on battery-powered devices. Nothing is started."""
    from penstock.cli.power_text import power_lines
    from penstock.power.cuts import cut_table
    from penstock.power.plan import compare

    problem = _problem(file, table or [])
    found = compare(cut_table(problem))
    chosen = found.plan_of(algorithm)
    if figure is not None:
        from penstock.cli.power_figure import draw_power

        draw_power(found, chosen, figure)
    if json:
        typer.echo(json_text.dumps(plans_record(found), indent=2))
    else:
        typer.echo("\n".join(power_lines(problem, found, chosen)))


def _problem(file: Path, tables: list[str]) -> PowerProblem:
    """The problem of a file; what a deployment does not give is measured over a sample."""
    from penstock.lang.deployment import read_deployment
    from penstock.lang.files import text_of
    from penstock.power.reading import is_deployment, read_power

    if not is_deployment(text_of(file), str(file)):
        return read_power(file)
    from penstock.device.measuring import measured_problem
    from penstock.device.own_tables import own_table

    return measured_problem(read_deployment(file), dict(map(own_table, tables)))


def plans_record(found: PlanComparison) -> dict[str, object]:
    """The stable form that ``--json`` prints; joules of one cycle."""
    return {
        "plans": [
            {
                "algorithm": plan.algorithm,
                "cuts": dict(plan.cuts),
                "tuning": plan.energy.tuning_j,
                "processing": plan.energy.processing_j,
                "energy": plan.energy.total_j,
                "cycle_bytes": plan.cycle_bytes,
                "lower_bound": found.lower_bound_j,
            }
            for plan in found.plans
        ]
    }
