"""``penstock plan``: where everything would go, and how much bursting that can take."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from penstock.app.planning import Subject
    from penstock.place.plan import Plan

PLAN_EXAMPLES = """\
[bold]Examples[/bold]

penstock plan ami.yaml --nodes 3                     where the fragments of a deployment go

penstock plan network.yaml --algorithm local-search  another algorithm than the file's

penstock plan network.yaml --figure plans.svg        what each plan can take, drawn

penstock plan network.json --json                    everything, for scripts
"""


def plan(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A deployment file or an abstract network.", show_default=False
        ),
    ],
    algorithm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose plan to show in full.", show_default="rod"),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(min=1, help="Plan for so many equal nodes instead of those in the file."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Draw the feasible sets.", show_default=False),
    ] = None,
    slice: Annotated[
        str | None,
        typer.Option(metavar="I1,I2", help="Which two variables to draw.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For algorithms that draw lots.")] = 0,
) -> None:
    """Compare placements: how much of all possible rates each can take. Nothing is started."""
    from penstock.app.planning import chosen_axes, competitors, plans_of, subject

    asked = subject(file, nodes)
    name = algorithm or asked.algorithm
    rivals = competitors(asked, name)
    axes = chosen_axes(asked.problem, slice) if figure is not None else (0, 0)
    plans = plans_of(asked.problem, rivals, seed)
    if figure is not None:
        from penstock.cli.plan_figure import draw_plans

        draw_plans(asked.problem, plans, name, axes, figure)
    if json:
        typer.echo(json_text.dumps(plans_record(asked, plans, name), indent=2))
    else:
        typer.echo("\n".join(plan_lines(asked, plans, name)))


def plans_record(asked: Subject, plans: list[Plan], name: str) -> dict[str, object]:
    """The stable form that ``--json`` prints: the plan asked for, then its rivals, best first."""
    ordered = sorted(plans, key=lambda plan: plan.algorithm != name)
    return {
        "algorithm": name,
        "variables": list(asked.problem.variables),
        "plans": [_record(asked, plan) for plan in ordered],
        "notes": list(asked.notes),
    }


def _record(asked: Subject, plan: Plan) -> dict[str, object]:
    quality = plan.quality
    return {
        "algorithm": plan.algorithm,
        "assignment": _nodes(asked, plan),
        "volume_ratio": quality.volume.ratio if quality.volume else None,
        "volume_error": quality.volume.error if quality.volume else None,
        "axis_product": quality.axis_product,
        "plane_distance": quality.plane_distance,
        "cut_streams": quality.cut_streams,
        "fixed": dict(zip(asked.problem.nodes, quality.fixed, strict=True)),
        "seconds": plan.seconds,
        "notes": list(quality.notes),
    }


def _nodes(asked: Subject, plan: Plan) -> dict[str, str]:
    return {
        name: asked.problem.nodes[node]
        for names, node in zip(asked.names, plan.assignment, strict=True)
        for name in names
    }


def plan_lines(asked: Subject, plans: list[Plan], name: str) -> list[str]:
    """The plans as a table, what it means, where everything goes, and what to know about it."""
    units, nodes, variables = asked.problem.size
    on = "node" if nodes == 1 else "nodes"
    head = f"{units} {asked.kind} on {nodes} {on}, {variables} variables"
    mine = next(rival for rival in plans if rival.algorithm == name)
    notes = [f"note: {note}" for note in (*asked.notes, *mine.quality.notes)]
    return [head, "", *_table(plans, name), "", *_meaning(mine), "", *_places(asked, mine), *notes]


def _table(plans: list[Plan], name: str) -> list[str]:
    titles = ("algorithm", "volume of ideal", "plane r/r*", "axis g", "cut streams", "time")
    rows = [titles, *(_cells(rival) for rival in plans)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    marks = ["  ", *("> " if rival.algorithm == name else "  " for rival in plans)]
    return [
        mark
        + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for mark, row in zip(marks, rows, strict=True)
    ]


def _cells(plan: Plan) -> tuple[str, ...]:
    quality = plan.quality
    return (
        plan.algorithm,
        _volume(plan),
        f"{quality.plane_distance:.2f}",
        f"{quality.axis_product:.2g}",
        f"{quality.cut_streams}",
        duration_text(plan.seconds),
    )


def _volume(plan: Plan) -> str:
    found = plan.quality.volume
    if found is None:
        return "not known"
    exact = f"{found.ratio:.3f}" if found.ratio >= 0.01 or not found.ratio else f"{found.ratio:.2g}"
    return f"{exact} ± {found.error:.1g}" if found.error else exact


def duration_text(seconds: float) -> str:
    """A length of time in the unit that suits it.

    >>> duration_text(0.0021), duration_text(1.26), duration_text(0.00004)
    ('2 ms', '1.3 s', '< 1 ms')
    """
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 1e-3 else "< 1 ms"


def _meaning(mine: Plan) -> list[str]:
    found = mine.quality.volume
    if found is None:
        return []
    share = f"{100 * found.ratio:.0f}" if found.ratio >= 0.01 else f"{100 * found.ratio:.2g}"
    return [
        "what it means: of all rate mixes these nodes could serve at all, "
        f"{mine.algorithm} keeps {share} % without moving anything."
    ]


def _places(asked: Subject, mine: Plan) -> list[str]:
    import textwrap

    on: dict[str, list[str]] = {node: [] for node in asked.problem.nodes}
    for name, node in _nodes(asked, mine).items():
        on[node].append(name)
    titles = _titles(mine, list(on))
    width = max(map(len, titles))
    lines = [f"{mine.algorithm} puts"]
    for title, names in zip(titles, on.values(), strict=True):
        text = ", ".join(names[:40]) + (f" and {len(names) - 40} more" if names[40:] else "")
        parts = textwrap.wrap(text or "nothing", 96 - width)
        lines += [f"  {title if not at else '':{width}}  {part}" for at, part in enumerate(parts)]
    return lines


def _titles(mine: Plan, nodes: list[str]) -> list[str]:
    """The nodes, and how much of each is in use whatever the rates are, if anything is."""
    fixed = mine.quality.fixed
    if not any(fixed):
        return nodes
    width = max(map(len, nodes))
    return [
        f"{node:{width}}  {100 * share:3.0f} % fixed"
        for node, share in zip(nodes, fixed, strict=True)
    ]
