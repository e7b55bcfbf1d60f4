"""What runs on a system, and what does no longer: ``submit``, ``ls`` and ``drop``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.beginning_text import beginning_lines, since_words
from penstock.cli.completion import submission_names
from penstock.cli.printing import JsonOption, print_json, print_line, print_table
from penstock.cli.sharing_text import decision_lines
from penstock.cli.target import HomeOption, connected
from penstock.errors import InputError, UsageError

if TYPE_CHECKING:
    from penstock.control.records import SubmissionKind

NOTHING_RUNS = "nothing is running; try penstock submit"
_QUERY = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/)*(SELECT|WITH)\b", re.IGNORECASE | re.DOTALL)
"""How a single query begins; a deployment begins otherwise."""


def submit(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A deployment file, or one query as .sql; - for standard input."
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="What to call it. [dim]default: like the file[/dim]")
    ] = None,
    max_latency: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How old results may be, as 3s.")
    ] = None,
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="now|oldest|start",
            help="Since when it counts what it reads of streams that run already: from now on, "
            "from the oldest rows kept, or from their start.",
        ),
    ] = "now",
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Take the place of one with this name; its state is forgotten."
        ),
    ] = False,
    share: Annotated[
        bool,
        typer.Option(
            "--share/--no-share",
            help="Read what runs already of others, or compute all of it for this query alone.",
        ),
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would come of it, and do nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Run it even if limits would be broken.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Come back once it runs, for two minutes at most.")
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Run a deployment file or a single query on the running system."""
    from penstock.model.beginnings import checked_start
    from penstock.model.durations import duration_us

    start = checked_start(from_)

    if str(file) == "-" and name is None:
        raise UsageError("what comes from standard input has no name", hint="Give one with --name.")
    text = _written(file)
    is_query = _QUERY.match(text) if str(file) == "-" else file.suffix == ".sql"
    kind: SubmissionKind = "sql" if is_query else "yaml"
    latency_us = None if max_latency is None else duration_us(max_latency)
    folder = str(file.parent.absolute())
    client = connected(home)
    made = client.submit(
        name or file.stem,
        kind,
        text,
        folder,
        latency_us,
        start,
        replace,
        share=share,
        force=force,
        dry_run=dry_run,
    )
    if wait and not dry_run:
        client.await_running(made.name)
    if json:
        print_json(made)
    else:
        for line in decision_lines(made):
            print_line(line)
        for warning in made.warnings:
            print_line(f"warning: {warning}")
        if made.dry_run:
            print_line(f"{made.name} was not taken in: this was a dry run")
            return
        parts = [", ".join(made.fragments)] * bool(made.fragments)
        parts += [f"once something reads it, {start}" for start in made.unread]
        print_line(f"running as {made.name}: {'; '.join(parts)}")
        for line in beginning_lines(made.begins):
            print_line(line)
        if made.balance is not None:
            from penstock.cli.balance_command import submitted_line

            print_line(submitted_line(made.balance, made.name))


def _written(file: Path) -> str:
    """What is in a file, or comes from standard input."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{file} cannot be read: {reason.lower()}") from None


def ls(home: HomeOption = None, json: JsonOption = False) -> None:
    """List what was submitted."""
    found = connected(home).queries()
    if json:
        print_json(found)
        return
    rows = [
        (
            query.name,
            f"kept for {', '.join(query.kept_for)}" if query.kept_for else query.state,
            " ".join(query.nodes),
            ", ".join(sorted({since_words(begun) for begun in query.begins})),
            ", ".join(query.queries),
            ", ".join(query.shares),
        )
        for query in found
    ]
    heads = ("name", "state", "on", "counts since (UTC)", "queries", "shares with")
    print_table(heads, rows, NOTHING_RUNS)


def drop(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=submission_names)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    keep_data: Annotated[
        bool,
        typer.Option("--keep-data", help="Put its state and results aside instead of deleting."),
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Stop a submission and forget it with its data; in a terminal it asks first."""
    client = connected(home)
    if not yes and not json and _is_asked():
        what = "put its state and results aside" if keep_data else "delete its state and results"
        typer.confirm(f"Stop {name} and {what}?", abort=True)
    done = client.drop(name, keep_data)
    if json:
        print_json(done)
    else:
        print(f"{name} dropped" + (f"; its data is in {done.kept}" if done.kept else ""))


def _is_asked() -> bool:
    """Whether somebody sits there who can answer."""
    return sys.stdin.isatty()
