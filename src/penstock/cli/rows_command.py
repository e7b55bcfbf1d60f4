"""``penstock rows``: what a running system has put out, and puts out."""

from __future__ import annotations

import json as json_text
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.app.words import printable
from penstock.cli.completion import stream_names
from penstock.cli.target import HomeOption, connected
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.control.answer_models import LetterAnswer
    from penstock.control.client import Client

ROWS_EXAMPLES = """\
[bold]Examples[/bold]

penstock rows heavy_homes                   all that is kept

penstock rows heavy_homes --since 10min     from the last ten minutes on

penstock rows heavy_homes --follow --json   for scripts, until the query ends

penstock rows heavy_homes --groups 0-29     half of 60 groups; another program reads 30-59

penstock rows --dead-letters readings       rows that could not be used, and why
"""

_WAIT_S = 1.0
_LETTERS = 1_000


def rows(
    name: Annotated[str, typer.Argument(help="A query or a stream.", autocompletion=stream_names)],
    since: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Only what came out so lately, as 10min.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until it ends, or Ctrl-C.")
    ] = False,
    groups: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Only rows of these groups, as 0-2,7.")
    ] = None,
    dead_letters: Annotated[
        bool,
        typer.Option("--dead-letters", help="What could not be used of a stream from outside."),
    ] = False,
    home: HomeOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object a row.")] = False,
) -> None:
    """Show the rows of a query or a stream that the system still keeps, oldest first."""
    from penstock.control.api_model import plain
    from penstock.model.durations import duration_us

    since_s = None if since is None else time.time() - duration_us(since) / 1e6
    if dead_letters and (since or follow or groups):
        raise UsageError(
            "--dead-letters goes with none of --since, --follow and --groups",
            hint="It shows the latest rows that were set aside.",
        )
    client = connected(home)
    try:
        if dead_letters:
            for letter in client.dead_letters(name, _LETTERS):
                print(json_text.dumps(plain(letter)) if json else _letter_line(name, letter))
            return
        for line in _lines(client, name, since_s, follow, groups, json):
            print(line, flush=follow)
    except KeyboardInterrupt:
        return
    finally:
        client.close()


def _lines(
    client: Client,
    name: str,
    since_s: float | None,
    follow: bool,
    groups: str | None,
    json: bool,
) -> Iterator[str]:
    # What comes from now on is not part of what is kept now.
    end = None if follow else client.rows(name, None, time.time() + 1, 0.0).next
    at: int | None = None
    is_empty = True
    while end is None or at is None or at < end:
        wait_s = _WAIT_S if follow else 0.0
        answer = client.rows(name, at, since_s if at is None else None, wait_s, groups)
        for row in answer.rows:
            is_empty = False
            yield json_text.dumps(row) if json else _line(name, row)
        if answer.ended and is_empty:
            client.check_readable(name)
        if answer.ended or (answer.next == at and not follow):
            return
        at = answer.next


def _letter_line(name: str, letter: LetterAnswer) -> str:
    """Where a row stood, why it could not be used, and what it said."""
    place = "" if letter.file is None else f"{letter.file}:{letter.line}"
    row = letter.row if isinstance(letter.row, str) else json_text.dumps(letter.row)
    parts = (name, letter.kind, place, letter.reason * (letter.kind != "late"), row)
    return "  ".join(printable(part) for part in parts if part)


def _line(name: str, row: dict[str, Any]) -> str:
    from penstock.app.results import line

    return line(name, row, ("" if value is None else str(value) for value in row.values()))
