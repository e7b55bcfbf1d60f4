"""The commands for a long-running system: up, submit, ls, status, nodes, move, events and so on."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.completion import fragment_names, node_names, submission_names
from penstock.cli.printing import (
    JsonOption,
    clock,
    print_json,
    print_line,
    print_table,
    say,
    watched,
)
from penstock.cli.sharing_text import decision_lines
from penstock.cli.target import HomeOption, connected, system_home
from penstock.errors import InputError, RunError, UsageError

if TYPE_CHECKING:
    from penstock.control.answer_models import BeginAnswer, FragmentAnswer, MoveAnswer
    from penstock.control.client import Client
    from penstock.control.records import SubmissionKind
    from penstock.control.sizing import NodesWanted

_NOTHING = "nothing is running; try penstock submit"
_QUERY = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/)*(SELECT|WITH)\b", re.IGNORECASE | re.DOTALL)
"""How a single query begins; a deployment begins otherwise."""


def up(
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|NAMES",
            help="How many nodes, or their names, with parents if they form a tree: a,b:a,c:a. "
            "[dim]default: 2, later those there are[/dim]",
            show_default=False,
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file that names the nodes, with parents if they form a tree.",
            show_default=False,
        ),
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option(min=1, help="Cores of each. [dim]default: 1, later as before[/dim]"),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory of each, as 2g. [dim]default: 1g, later as before[/dim]"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="The API's port; 0 for any free one. [dim]default: 7400, later as before[/dim]",
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The catalog's database. [dim]default: SQLite in the folder[/dim]",
            show_default=False,
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Where nodes run: processes, inline, cluster, or a cluster's spark:// or k8s:// "
            "master. [dim]default: processes[/dim]",
            show_default=False,
        ),
    ] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Start a system: a controller and nodes that go on in the background.

    A system that is running is left as it is; parts of it that have died are started again. One
    that was stopped comes up as it was, unless something else is asked for.
    """
    from penstock.control.launch import bring_up
    from penstock.lang.deployment.sizes import memory_bytes

    size = None if memory is None else memory_bytes(memory)
    wanted = _nodes_wanted(nodes, tree, cores, size)
    place = system_home(home)
    client = bring_up(place, wanted, port, catalog, say=say, host=on)
    names = ", ".join(node.name for node in client.nodes())
    if json:
        print_json(
            {
                "url": client.url,
                "home": str(place.path),
                "nodes": client.nodes(),
                "dashboard": client.login_link(),
            }
        )
        return
    print(f"system up  ·  nodes {names}  ·  {client.url}  ·  {place.path}")
    print(dashboard_line(client))


def _nodes_wanted(
    nodes: str | None, tree: Path | None, cores: int | None, memory_bytes: int | None
) -> NodesWanted:
    from penstock.control.sizing import NodesWanted, nodes_written
    from penstock.lang.deployment import read_nodes

    if nodes is not None and tree is not None:
        raise UsageError("--nodes and --tree both say which nodes there are", hint="Give one.")
    if tree is not None:
        return NodesWanted(None, cores, memory_bytes, read_nodes(tree))
    given = None if nodes is None else nodes_written(nodes)
    if not isinstance(given, int | None):
        return NodesWanted(None, cores, memory_bytes, given)
    if given is not None and not 1 <= given <= 100:
        raise UsageError(f"--nodes is {given}", hint="Give 1 to 100, or names.")
    return NodesWanted(given, cores, memory_bytes)


def dashboard_line(client: Client) -> str:
    """Where the dashboard is, for a browser that has not been there yet."""
    return f"dashboard {client.login_link()}  ·  good once, for a minute; later: penstock dashboard"


def dashboard(
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Print a link that logs a browser in to the dashboard, once and within a minute."""
    link = connected(home).login_link()
    if json:
        print_json({"link": link})
    else:
        print(link)
    if open_:
        import webbrowser

        if not webbrowser.open(link):
            raise RunError("no browser could be opened", hint="Follow the link above.")


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
        if made.dry_run:
            print_line(f"{made.name} was not taken in: this was a dry run")
            return
        parts = [", ".join(made.fragments)] * bool(made.fragments)
        parts += [f"once something reads it, {start}" for start in made.unread]
        print_line(f"running as {made.name}: {'; '.join(parts)}")
        for line in _beginning_lines(made.begins):
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


def _beginning_lines(begins: list[BeginAnswer]) -> list[str]:
    """Since when each query counts, where that is not from the first row on."""
    lines = []
    for begin in begins:
        name = ", ".join(begin.queries) or begin.fragment
        if begin.since is not None:
            lines.append(f"{name} counts after {clear_moment(begin.since)} UTC, event time")
        if begin.untimed:
            lines.append(f"{name} sees rows from the next batch on where they have no event time")
    return lines


def clear_moment(written: str) -> str:
    """A moment as people read it.

    >>> clear_moment("2026-03-01T12:00:00.250000Z"), clear_moment("2026-03-01T12:00:00Z")
    ('2026-03-01 12:00:00.25', '2026-03-01 12:00:00')
    """
    day, _, time_of_day = written.removesuffix("Z").partition("T")
    whole, point, part = time_of_day.partition(".")
    return f"{day} {whole}{point}{part.rstrip('0')}"


def _since_words(one: BeginAnswer | FragmentAnswer) -> str:
    """Since when a fragment counts, for a table."""
    if one.since is not None:
        return clear_moment(one.since)
    return "its submission" if one.untimed else "the start"


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
            ", ".join(sorted({_since_words(begun) for begun in query.begins})),
            ", ".join(query.queries),
        )
        for query in found
    ]
    print_table(("name", "state", "on", "counts since (UTC)", "queries"), rows, _NOTHING)


def nodes(home: HomeOption = None, json: JsonOption = False) -> None:
    """List the nodes: what they have, what they use, what they run."""
    found = connected(home).nodes()
    if json:
        print_json(found)
        return
    rows = [
        (
            node.name,
            node.state,
            f"{node.utilisation:.0%} of {node.cores}",
            f"{node.memory_bytes / 2**20:,.0f} MB",
            _heard(node.heard),
            ", ".join(node.runs),
        )
        for node in found
    ]
    print_table(("node", "state", "cpu", "memory", "heard from", "runs"), rows, "no nodes")


def _heard(ages_s: Mapping[str, float]) -> str:
    """Of how many others a node knows the load, and how old the oldest word is."""
    if not ages_s:
        return "nobody"
    return f"{len(ages_s)}, up to {max(ages_s.values()):.1f} s ago"


def status(
    operators: Annotated[
        bool, typer.Option("--operators", help="Show operators instead, with estimated costs.")
    ] = False,
    devices: Annotated[
        bool, typer.Option("--devices", help="Show broadcasts and devices instead.")
    ] = False,
    tree: Annotated[
        bool, typer.Option("--tree", help="Draw the tree of nodes, with what they use and run.")
    ] = False,
    joins: Annotated[
        bool, typer.Option("--joins", help="Show the parts of joins and their groups instead.")
    ] = False,
    queries: Annotated[
        bool,
        typer.Option(
            "--queries", help="Show results against their limits and the clock, and what they cost."
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it anew every second, until Ctrl-C.")
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Show how every fragment is doing, and the latest moves."""
    if watch:
        watched(lambda: status(operators, devices, tree, joins, queries, home=home, json=json))
        return
    if queries:
        _standing_status(connected(home), json)
        return
    if tree:
        _tree_status(connected(home), json)
        return
    if joins:
        _join_status(connected(home), json)
        return
    if devices:
        _device_status(connected(home), json)
        return
    if operators:
        _operator_status(connected(home), json)
        return
    found = connected(home).system()
    if json:
        print_json(found)
        return
    print_table(
        (
            "fragment",
            "on",
            "state",
            "rows/s",
            "rows in",
            "rows out",
            "unread",
            "µs/row",
            "batch ms",
            "p50",
            "p99",
            "counts since (UTC)",
        ),
        [_status_row(fragment) for fragment in found.fragments],
        _NOTHING,
    )
    for answer in found.fragments:
        for text in [answer.error] * bool(answer.error) + answer.notes:
            print_line(f"{answer.name}: {text}")
    for aside in found.set_aside:
        print_line(f"set aside of {aside.stream}: {aside.text}; in {aside.folder}")
    from penstock.cli.balance_command import balance_line

    print_line(balance_line(found.balance))
    for moved in found.moves:
        print_line(_move_line(moved))


def _status_row(one: FragmentAnswer) -> tuple[str, ...]:
    # Of an intake nothing is known but what it costs.
    known = one.status
    cells: tuple[str, ...] = ("",) * 8
    if known is not None:
        latency = (known.latency_p50_s, known.latency_p99_s)
        cells = (
            f"{known.rows_in_per_s:,.0f}",
            f"{known.rows_in:,}",
            f"{known.rows_out:,}",
            f"{known.backlog_rows:,}",
            _number(known.cost_us),
            f"{known.batch_ms:,.0f}",
            *("" if value is None else f"{value:.1f} s" for value in latency),
        )
    since = _since_words(one) if one.kind == "fragment" else ""
    return (one.name, one.node or "–", one.state, *cells, since)


def _device_status(client: Client, json: bool) -> None:
    from penstock.cli.device_text import device_lines

    found = [device.model_dump() for device in client.devices()]
    if json:
        print_json(found)
        return
    for text in device_lines(found):
        print_line(text)


def _standing_status(client: Client, json: bool) -> None:
    found = [fragment for fragment in client.fragments() if fragment.kind == "fragment"]
    if json:
        print_json(found)
        return
    rows = [
        (
            fragment.name,
            fragment.state,
            "" if fragment.limit_s is None else f"{fragment.limit_s:g} s",
            _percent(fragment.limit_share),
            "" if fragment.watermark_gap_s is None else f"{fragment.watermark_gap_s:,.1f} s",
            _percent(fragment.cpu_share),
            str(fragment.restarts),
        )
        for fragment in found
    ]
    heads = ("fragment", "state", "limit", "used", "watermark behind", "of all cpu", "restarts")
    print_table(heads, rows, _NOTHING)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _tree_status(client: Client, json: bool) -> None:
    from penstock.cli.tree_text import tree_lines

    if json:
        print_json(client.nodes())
        return
    for text in tree_lines(client.nodes()):
        print(text)


def _operator_status(client: Client, json: bool) -> None:
    found = client.operators()
    if json:
        print_json(found)
        return
    rows = [
        (
            operator.operator,
            operator.kind,
            operator.fragment,
            operator.node or "–",
            _number(operator.rows_in_per_s, 0),
            _number(operator.rows_out_per_s, 0),
            _number(operator.selectivity, 3),
            _number(operator.cost_us),
        )
        for operator in found
    ]
    heads = ("operator", "kind", "in", "on", "rows/s in", "rows/s out", "selectivity", "≈ µs/row")
    print_table(heads, rows, "nothing has been measured yet")


def _join_status(client: Client, json: bool) -> None:
    from penstock.cli.join_text import join_lines

    found = client.joins()
    if json:
        print_json(found)
        return
    for text in join_lines(found):
        print_line(text)


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _move_line(one: MoveAnswer) -> str:
    took = f" in {one.ended_s - one.created_s:.1f} s" if one.ended_s else ""
    paused = f", paused {one.pause_s:.2f} s" if one.pause_s is not None else ""
    what = f"move {one.id}: {one.unit} {one.source} → {one.target} {one.state}"
    return f"{clock(one.created_s)}  {what}{took}{paused}: {one.error or one.reason}"


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
        print_line(_move_line(done))
    if done.state != "done":
        raise RunError(f"{fragment} stays on {done.source}: {done.error}")


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


def down(home: HomeOption = None, json: JsonOption = False) -> None:
    """Stop the nodes and the controller; a later up goes on from here."""
    from penstock.control.launch import bring_down

    bring_down(system_home(home))
    if json:
        print_json({"home": str(system_home(home).path), "state": "down"})
    else:
        print("system down; penstock up goes on where it stopped")
