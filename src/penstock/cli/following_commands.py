"""The commands that say what happened, and go on with what happens: events and logs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.completion import log_names
from penstock.cli.printing import JsonOption, clock, print_json, print_json_line, print_line
from penstock.cli.target import HomeOption, connected

if TYPE_CHECKING:
    from penstock.control.client import Client
    from penstock.control.records import EventRecord

EVENTS_EXAMPLES = """\
[bold]Examples[/bold]

penstock events -n 50               the last fifty, oldest first

penstock events --follow            and what happens from now on

penstock events -f --json | jq .text
"""
LOGS_EXAMPLES = """\
[bold]Examples[/bold]

penstock logs                       the end of the controller's log

penstock logs b -n 500              more of node b's

penstock logs b --follow            and what is written from now on
"""

_LOOK_EVERY_S = 1.0
_LOOKED_AT, _LOOKED_AT_MOST = 200, 2_000


def events(
    last: Annotated[
        int, typer.Option("--last", "-n", min=1, max=2_000, help="How many, at most.")
    ] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens, until Ctrl-C.")
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """List what happened last: submissions, assignments, moves, recoveries; oldest first.

    Followed as JSON, every event is a line.
    """
    client = connected(home)
    found = client.events(last)
    if follow:
        for event in _following(client, found):
            if json:
                print_json_line(event)
            else:
                print_line(_event_line(event))
    elif json:
        print_json(found)
    else:
        for event in found:
            print_line(_event_line(event))
        if not found:
            print("nothing has happened yet")


def _following(client: Client, found: list[EventRecord]) -> Iterator[EventRecord]:
    """What has happened, and then what happens: each once, as long as somebody listens."""
    seen = 0
    while True:
        yield from (event for event in found if event.id > seen)
        seen = max([seen, *(event.id for event in found)])
        time.sleep(_LOOK_EVERY_S)
        found = client.events(_LOOKED_AT)
        if found and found[0].id > seen + 1:
            found = client.events(_LOOKED_AT_MOST)


def _event_line(event: EventRecord) -> str:
    return f"{clock(event.at_s)}  {event.kind:<8}  {event.subject}: {event.text}"


def logs(
    name: Annotated[
        str, typer.Argument(metavar="controller|NODE", autocompletion=log_names)
    ] = "controller",
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=1, max=10_000, help="How many, at most.")
    ] = 100,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written, until Ctrl-C.")
    ] = False,
    negotiations: Annotated[
        bool,
        typer.Option(
            "--negotiations",
            help="Print what neighbours in a tree offered each other instead; -n of them.",
        ),
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Print the end of a log. As JSON, every line is an object."""
    client = connected(home)
    if negotiations:
        _print_negotiations(client, min(lines, 2_000), json)
        return
    for text in _log_parts(client, name, lines, follow):
        if not json:
            print(text, end="", flush=True)
            continue
        for line in text.splitlines():
            print_json_line({"log": name, "line": line})


def _print_negotiations(client: Client, last: int, json: bool) -> None:
    from penstock.cli.negotiation_text import negotiation_lines

    found = client.negotiations(last)
    for negotiation in found:
        if json:
            print_json_line(negotiation)
            continue
        for text in negotiation_lines(negotiation):
            print_line(text)
    if not found and not json:
        print("nobody has had anything to give so far")


def _log_parts(client: Client, name: str, lines: int, follow: bool) -> Iterator[str]:
    """The end of a log, and then what is added to it."""
    part = client.log_part(name, lines)
    yield part.text
    while follow:
        time.sleep(_LOOK_EVERY_S)
        part = client.log_part(name, lines, part.end)
        if part.text:
            yield part.text
