"""The controller as a process: what ``python -m penstock.web.server HOME PORT`` runs."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from penstock.control.api import make_app
from penstock.control.balancing import LiveBalancing
from penstock.control.broadcasting import keep_broadcasting
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller, tick_always
from penstock.control.door import Door
from penstock.control.group_balancing import GroupBalancer
from penstock.control.home import Address, Home
from penstock.control.hosts import Host, host_of
from penstock.control.recorded_plans import keep_plans
from penstock.control.security import Guard, allowed_hosts
from penstock.control.system_balance import keep_balance
from penstock.control.versions import check_nodes
from penstock.errors import InputError, PenstockError

HOST = "127.0.0.1"
_ENDING_AT_MOST_S = 5
"""Whoever waits for rows for longer is cut off when the controller stops."""
AddPages = Callable[[FastAPI], None]


def no_pages(_: FastAPI) -> None:
    """Serves the API alone."""


def main(arguments: list[str], add_pages: AddPages = no_pages) -> int:
    """Runs the controller until it is told to stop; ``add_pages`` puts pages beside its API."""
    home, port = Home(Path(arguments[0])), int(arguments[1])
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout
    )
    try:
        serve(home, port, add_pages)
    except PenstockError as error:
        logging.error("%s", error)
        return error.exit_code
    return 0


def serve(home: Home, port: int, add_pages: AddPages = no_pages) -> None:
    """Answers requests and makes decisions until asked to stop."""
    with closing(_bound(port)) as listening, closing(Catalog(home.catalog_url)) as catalog:
        catalog.prepare()
        check_nodes(catalog)
        keep_plans(catalog)
        catalog.adopt()
        _serve(home, catalog, listening, add_pages)


def _serve(home: Home, catalog: Catalog, listening: socket.socket, add_pages: AddPages) -> None:
    port = listening.getsockname()[1]
    controller, host = Controller(home, catalog), host_of(home, catalog)
    down, door = threading.Event(), Door(home.token())
    over = threading.Event()
    app = make_app(home, catalog, controller, door, down.set, over.is_set)
    add_pages(app)
    guarded = Guard(app, door, allowed_hosts(HOST, port))
    config = uvicorn.Config(
        guarded,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=_ENDING_AT_MOST_S,
    )
    server = uvicorn.Server(config)
    keep_balance(catalog, controller.system())
    home.tell_stopped(False)
    balancing = LiveBalancing(catalog, controller)
    group_balancer = GroupBalancer(catalog, controller.groups)
    ticks = (
        controller.tick,
        lambda: balancing.tick(catalog.now_s()),
        lambda: group_balancer.tick(catalog.now_s()),
        lambda: controller.note_costs(catalog.now_s()),
        lambda: controller.notices.note_set_aside(catalog.now_s()),
        lambda: controller.notices.note_latencies(catalog.now_s()),
        lambda: controller.notices.note_room(catalog.now_s()),
    )
    threads = [
        threading.Thread(target=tick_always, args=(ticks, over.wait), name="decide"),
        threading.Thread(target=_keep_up, args=(host, catalog, over), name="host"),
        threading.Thread(
            target=keep_broadcasting, args=(home, controller.system, over), name="broadcast"
        ),
        threading.Thread(
            target=_await_down, args=(home, down, over, server), name="down", daemon=True
        ),
    ]
    for thread in threads:
        thread.start()
    home.tell_address(Address(f"http://{HOST}:{port}", os.getpid()))
    try:
        server.run(sockets=[listening])
    finally:
        over.set()
        for thread in threads[:3]:
            thread.join()
        if down.is_set():
            host.stop(catalog.nodes())
            home.forget_address()


def _bound(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise InputError(
            f"port {port} cannot be used: {error.strerror}", hint="Choose another with --port."
        ) from None
    return listening


def _keep_up(host: Host, catalog: Catalog, over: threading.Event) -> None:
    while not over.wait(0.5):
        try:
            host.keep_up(catalog.nodes())
        except Exception:
            logging.exception("nodes could not be started")


def _await_down(
    home: Home, down: threading.Event, over: threading.Event, server: uvicorn.Server
) -> None:
    down.wait()
    over.set()
    home.tell_stopped(True)
    server.should_exit = True
