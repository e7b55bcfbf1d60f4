"""Starting and stopping a whole system on this machine."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import psutil

from penstock.control.catalog import Catalog
from penstock.control.client import KINDS, Client
from penstock.control.home import Home
from penstock.control.hosts import checked_host
from penstock.control.records import NodeRecord
from penstock.control.sizing import NodesWanted, changed_parents, size_nodes
from penstock.control.versions import check_controller, check_nodes
from penstock.errors import InputError, RunError, UnreachableError
from penstock.model.network import NodeSpec

DEFAULT_PORT = 7400
CONTROLLER = "penstock.web.server"
"""The controller's program. Started by its name, as it lies above: it serves the dashboard too."""
_LOOK_EVERY_S = 0.1
_LOGGED = re.compile(r"^\S+ \S+ (INFO|WARNING|ERROR) ")

# Controllers outlive whoever started them; a process that is let go of here would be complained
# about.
_started: list[subprocess.Popen[bytes]] = []


def bring_up(
    home: Home,
    nodes: Iterable[NodeSpec] | NodesWanted,
    port: int | None = 0,
    catalog_url: str | None = None,
    patience_s: float = 120.0,
    say: Callable[[str], None] = lambda _: None,
    host: str | None = None,
) -> Client:
    """Starts the controller and the nodes that are not running; a client of the system.

    ``host`` is where nodes run: see :func:`penstock.control.hosts.checked_host`.
    What already runs is left as it is, so this also brings back a system whose controller or
    nodes have died. Where ``port`` is None, it is the one that was asked for last.
    """
    with home.starting():
        home.prepare(catalog_url, None if host is None else checked_host(host))
        # Before its tables are touched: what runs with them must not have others all at once.
        _check_controller(home)
        with closing(Catalog(home.catalog_url)) as catalog:
            catalog.prepare()
            check_nodes(catalog)
            _declare(catalog, nodes)
        if not is_up(home):
            say("starting the controller…")
            _start_controller(home, _chosen_port(home, port), patience_s)
            if port is not None:
                home.keep_port(port)
        elif port is not None and port not in (0, _port_of(home)):
            raise InputError(
                f"the system in {home.path} answers on port {_port_of(home)}, not {port}",
                hint="Its port changes when it starts: penstock down, then up again.",
            )
        client = Client.of(home)
        say("starting nodes…")
        _await_nodes(client, home, patience_s)
        return client


def _declare(catalog: Catalog, nodes: Iterable[NodeSpec] | NodesWanted) -> None:
    there, now_s = catalog.nodes(), catalog.now_s()
    if isinstance(nodes, NodesWanted):
        made, resized = size_nodes(nodes, there, now_s)
        named: Sequence[NodeSpec | NodeRecord] = nodes.named or made
    else:
        named = tuple(nodes)
        made = [
            NodeRecord(spec.name, spec.cores, spec.memory_bytes, parent=spec.parent)
            for spec in named
        ]
        resized = []
    hung = changed_parents(named, there, now_s)
    for node in made:
        catalog.declare(node)
    for node in resized:
        catalog.resize(node.name, node.cores, node.memory_bytes)
    if hung:
        catalog.hang(hung)


def _chosen_port(home: Home, asked: int | None) -> int:
    if asked is not None:
        return asked
    return DEFAULT_PORT if home.port is None else home.port


def _port_of(home: Home) -> int:
    return int(home.address().url.rsplit(":", 1)[1])


def _check_controller(home: Home) -> None:
    if is_up(home):
        with closing(Client.of(home)) as client:
            check_controller(client.version())


def is_up(home: Home) -> bool:
    """Whether a controller answers for this folder."""
    try:
        with closing(Client.of(home)) as client:
            client.version()
        return True
    except UnreachableError:
        return False


def _start_controller(home: Home, port: int, patience_s: float) -> None:
    home.forget_address()
    command = [sys.executable, "-m", CONTROLLER, str(home.path), str(port)]
    with home.log("controller").open("ab") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    _started.append(process)
    until_s = time.monotonic() + patience_s
    while not is_up(home):
        if process.poll() is not None or time.monotonic() > until_s:
            # It ends with the code of what went wrong.
            raise KINDS.get(process.returncode, RunError)(
                f"the controller did not start: {_last_line(home.log('controller'))}",
                hint=f"Details are in {home.log('controller')}.",
            )
        time.sleep(_LOOK_EVERY_S)


def _last_line(log: Path) -> str:
    """What a process said last, without the time and the level of the line."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return _LOGGED.sub("", lines[-1]) if lines else "it said nothing"


def _await_nodes(client: Client, home: Home, patience_s: float) -> None:
    until_s = time.monotonic() + patience_s
    while True:
        waiting = [node.name for node in client.nodes() if node.state != "up"]
        if not waiting:
            return
        if time.monotonic() > until_s:
            # One that did not get as far as having a log of its own: its controller knows why.
            own, controller = home.log(waiting[0]), home.log("controller")
            log = own if own.exists() else controller
            raise RunError(
                f"node {waiting[0]} did not start: {_last_line(log)}",
                hint=f"Details are in {log}; penstock doctor checks this machine.",
            )
        time.sleep(_LOOK_EVERY_S)


def bring_down(home: Home, patience_s: float = 60.0) -> None:
    """Stops the nodes and the controller; their data stays."""
    address = home.address()
    client = Client.of(home)
    try:
        client.down()
    finally:
        client.close()
    until_s = time.monotonic() + patience_s
    while psutil.pid_exists(address.pid) and _is_controller(address.pid):
        if time.monotonic() > until_s:
            raise RunError(
                f"the controller did not stop within {patience_s:g} s",
                hint=f"Its process is {address.pid}.",
            )
        time.sleep(_LOOK_EVERY_S)
    # One of our own is only gone once it was asked how it ended.
    _started[:] = [process for process in _started if process.poll() is None]


def _is_controller(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        return alive and CONTROLLER in process.cmdline()
    except psutil.Error:
        return False
