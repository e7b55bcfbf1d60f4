"""Starting and stopping a system that goes on: ``up``, ``down``, and the way in, ``dashboard``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.printing import JsonOption, print_json, say
from penstock.cli.target import HomeOption, connected, system_home
from penstock.errors import RunError, UsageError

if TYPE_CHECKING:
    from penstock.control.client import Client
    from penstock.control.sizing import NodesWanted


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


def down(home: HomeOption = None, json: JsonOption = False) -> None:
    """Stop the nodes and the controller; a later up goes on from here."""
    from penstock.control.launch import bring_down

    bring_down(system_home(home))
    if json:
        print_json({"home": str(system_home(home).path), "state": "down"})
    else:
        print("system down; penstock up goes on where it stopped")
