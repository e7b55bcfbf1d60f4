"""The disseminator: how fast the same bytes reach all receivers, beside a plain loop of sends."""

from __future__ import annotations

import json
import multiprocessing
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from penstock.bench.report import BenchCase, compared
from penstock.device.station import HOST, Station

RECEIVERS = 20
CYCLE_BYTES = 4 << 20
_PIECE = 1 << 20
_GOAL_BYTES_PER_S = 100e6


def dissemination_cases(quick: bool) -> Iterator[BenchCase]:
    """Bytes a second that all receivers together get, and the ratio to a plain loop."""
    cycles = 10 if quick else 40
    plain, ours = [], []
    for _ in range(3):  # Turn by turn: what disturbs the machine disturbs both.
        plain.append(plain_rate(cycles))
        ours.append(station_rate(cycles))
    name = f"disseminator, {RECEIVERS} receivers"
    rate = max(ours)
    is_fast = rate >= _GOAL_BYTES_PER_S
    yield BenchCase(f"{name}: bytes sent", rate / 1e6, "MB/s", goal=">= 100", ok=is_fast)
    yield BenchCase(f"{name}: the broadcast itself", rate / RECEIVERS / 1e6, "MB/s")
    yield compared(
        f"{name}, beside a plain sendall loop", rate / 1e6, "MB/s", max(plain) / 1e6, at_least=0.5
    )


def station_rate(cycles: int) -> float:
    """Bytes a second through the station."""
    station = Station(0, lambda asked: ({}, True))
    data = bytes(CYCLE_BYTES)
    with _listening(station.port, lambda: _pump(station)) as join:
        while len(station.tuned) < RECEIVERS:
            _pump(station)
        began_s = time.perf_counter()
        for _ in range(cycles):
            station.send(data)
            while not station.is_drained:
                _pump(station)
        spent_s = time.perf_counter() - began_s
        station.close()
        join()
    return cycles * CYCLE_BYTES * RECEIVERS / spent_s


def plain_rate(cycles: int) -> float:
    """Bytes a second through one ``sendall`` after the other."""
    data = bytes(CYCLE_BYTES)
    server = socket.create_server((HOST, 0))
    with closing(server), _listening(server.getsockname()[1], lambda: None) as join:
        made = [server.accept()[0] for _ in range(RECEIVERS)]
        began_s = time.perf_counter()
        for _ in range(cycles):
            for connection in made:
                connection.sendall(data)
        spent_s = time.perf_counter() - began_s
        for connection in made:
            connection.close()
        join()
    return cycles * CYCLE_BYTES * RECEIVERS / spent_s


def _pump(station: Station) -> None:
    station.pump(time.monotonic() + 0.002)


@contextmanager
def _listening(port: int, meanwhile: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """A process with all receivers, which throw away what they get."""
    process = multiprocessing.get_context("spawn").Process(target=_receive, args=(port,))
    process.start()

    def join() -> None:
        while process.is_alive():
            process.join(0.01)

    try:
        meanwhile()
        yield join
    finally:
        process.kill()
        process.join()


def _receive(port: int) -> None:
    selector = selectors.DefaultSelector()
    for _ in range(RECEIVERS):
        made = socket.create_connection((HOST, port))
        made.sendall(json.dumps({}).encode() + b"\n")
        selector.register(made, selectors.EVENT_READ)
    buffer, left = bytearray(_PIECE), RECEIVERS
    while left:
        for key, _ in selector.select():
            assert isinstance(key.fileobj, socket.socket)
            try:
                count = key.fileobj.recv_into(buffer)
            except ConnectionError:
                count = 0
            if not count:
                selector.unregister(key.fileobj)
                left -= 1
