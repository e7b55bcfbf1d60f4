"""``penstock admit``: decides a stated case of admission, without a system."""

from __future__ import annotations

import json as json_text
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from penstock.lang.admission import AdmissionCase
    from penstock.share.admission import AdmissionSituation, GraphVerdict

ADMIT_EXAMPLES = """\
[bold]Examples[/bold]

penstock admit case.yaml          which candidate graphs may run, and which is chosen

penstock admit case.yaml --json   the same for scripts
"""


def admit(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The case, as YAML or JSON.", show_default=False),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Decide which graphs a request may run as, and what that does to what runs already."""
    from penstock.lang.admission import read_admission
    from penstock.share.admission import admission_record
    from penstock.share.admission import admit as decide

    case = read_admission(file)
    verdicts, choice = decide(situation_of(case), case.plan, case.graphs)
    if json:
        typer.echo(json_text.dumps(admission_record(verdicts, choice), indent=2))
    else:
        typer.echo("\n".join(admission_lines(case, verdicts, choice)))


def situation_of(case: AdmissionCase) -> AdmissionSituation:
    """The case as the planner takes it."""
    from penstock.share.admission import AdmissionSituation
    from penstock.share.projection import NodeLoad, Serving

    return AdmissionSituation(
        {name: NodeLoad(node.load, node.load_tau_s) for name, node in case.nodes.items()},
        {ends: load for ends, (_, load) in case.links.items()},
        case.apps,
        {name: Serving(node.serves) for name, node in case.nodes.items()},
        {ends: name for ends, (name, _) in case.links.items()},
    )


def admission_lines(
    case: AdmissionCase, verdicts: dict[str, GraphVerdict], choice: str | None
) -> list[str]:
    """The verdicts for people: the choice, then every graph with what it comes to."""
    lines = [f"admitted as {choice}" if choice is not None else "refused: no graph may run"]
    limits = {app.name: app.limit_s for app in case.apps}
    before = {app.name: app.time_s for app in case.apps}
    for name, verdict in verdicts.items():
        state = "fits" if verdict.ok else f"does not fit: {', '.join(verdict.why)}"
        lines.append(f"{'>' if name == choice else ' '} {name}  {state}")
        lines.append(
            f"    time {_seconds(verdict.time_s)} (limit {case.plan.limit_s:g} s)"
            + (f" · phi {verdict.phi:.4g}" if isfinite(verdict.phi) else "")
        )
        lines += [
            f"    {app} {before[app]:.4g} → {_seconds(after)} (limit {limits[app]:g} s)"
            for app, after in verdict.after_s.items()
        ]
    return lines


def _seconds(value: float) -> str:
    return f"{value:.4g} s" if isfinite(value) else "without end"
