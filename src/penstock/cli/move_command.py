"""``penstock move``: a fragment, or groups of a join, to another node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.completion import fragment_names, node_names
from penstock.cli.printing import JsonOption, clock, print_json, print_line
from penstock.cli.target import HomeOption, connected
from penstock.errors import RunError

if TYPE_CHECKING:
    from penstock.control.answer_models import MoveAnswer


def move(
    fragment: Annotated[
        str,
        typer.Argument(
            metavar="FRAGMENT",
            help="A fragment, or groups: [dim]pairs:3,7[/dim]",
            autocompletion=fragment_names,
        ),
    ],
    node: Annotated[str, typer.Argument(metavar="NODE", autocompletion=node_names)],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Move a fragment, or groups of a join, to another node, while it runs."""
    client = connected(home)
    done = client.await_move(client.move(fragment, node).id)
    if done.state == "done" and "groups" not in done.numbers:
        done = client.await_pause(done.id)
    if json:
        print_json(done)
    else:
        print_line(move_line(done))
    if done.state != "done":
        raise RunError(f"{fragment} stays on {done.source}: {done.error}")


def move_line(move: MoveAnswer) -> str:
    took = f" in {move.ended_s - move.created_s:.1f} s" if move.ended_s else ""
    paused = f", paused {move.pause_s:.2f} s" if move.pause_s is not None else ""
    what = f"move {move.id}: {move.unit} {move.source} → {move.target} {move.state}"
    return f"{clock(move.created_s)}  {what}{took}{paused}: {move.error or move.reason}"
