"""``penstock device``: a battery-powered device that hears the result of a query."""

from __future__ import annotations

import json as json_text
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.target import HomeOption
from penstock.errors import InputError, UnreachableError, UsageError, listed, suggestion

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.device.receiver import Address

DEVICE_EXAMPLES = """\
[bold]Examples[/bold]

penstock device --query profit --name anna --table portfolio=mine.csv

penstock device --query profit --name ben --state ben --to ben/rows    goes on where it stopped

penstock device --query alerts --server 127.0.0.1:4711 --token-file device-token
"""


def device(
    query: Annotated[str, typer.Option(metavar="NAME", help="The query to hear.")],
    name: Annotated[str, typer.Option(help="What the device is called.")] = "device",
    server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The station. [dim]default: that of --home[/dim]"),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Holds what devices must know to register."),
    ] = None,
    home: HomeOption = None,
    speed: Annotated[float | None, typer.Option(help="Cycles per second.")] = None,
    processing_power: Annotated[float | None, typer.Option(help="Watts for computing.")] = None,
    receiving_power: Annotated[float | None, typer.Option(help="Watts for listening.")] = None,
    battery: Annotated[float | None, typer.Option(help="Joules in the battery.")] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="A table of this device: CSV or Parquet."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Store rows as Parquet, each once.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep what a restart goes on with.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object a row.")] = False,
    patience: Annotated[
        float, typer.Option(help="Seconds after which a silent station is given up.")
    ] = 30.0,
) -> None:
    """Be a device: register, tune in, sleep over what is for others, run what was shipped.

    Rows are printed or stored; what it used and what it missed is told at the end. The profile is
    that of the deployment file, where it has a device of this name.
    """
    from penstock.app.signals import StopRequest
    from penstock.control.home import DEFAULT, Home
    from penstock.device.heard import HeardResults
    from penstock.device.own_tables import own_table
    from penstock.device.receiver import ReceiverProgram, Registration

    place = Home(home or DEFAULT)
    given = {
        "speed_per_s": speed,
        "processing_w": processing_power,
        "receiving_w": receiving_power,
        "battery_j": battery,
    }
    profile = {key: value for key, value in given.items() if value is not None}
    registration = Registration(query, name, profile, _token(token_file, place, server))
    tables = dict(map(own_table, table or ()))
    heard = HeardResults(tables, _output(query, to, state, json), state)
    program = ReceiverProgram(_address(server, place, query), registration, heard)
    with StopRequest(os.dup(2)) as stop:
        program.run(lambda: stop.wait(0), patience)
    _tell(program.record(), json)


def _address(server: str | None, home: Any, query: str) -> Callable[[], Address]:
    from penstock.control.broadcasting import devices_answer

    if server is not None:
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"--server {server} is no address", hint="Write HOST:PORT.")
        return lambda: (host, int(port))

    def look() -> Address:
        stations = devices_answer(home)
        found = next((station for station in stations if query in station["queries"]), None)
        if found is None:
            names = [name for station in stations for name in station["queries"]]
            others = f"; on the air are {listed(names)}" if names else ""
            raise UnreachableError(
                f"nobody in {home.path} broadcasts {query}{others}",
                hint=suggestion(query, names)
                or "Is the system up? penstock status --devices shows its stations.",
            )
        return ("127.0.0.1", int(found["port"]))

    return look


def _token(path: Path | None, home: Any, server: str | None) -> Callable[[], str]:
    if path is not None:
        try:
            token = path.read_text().strip()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        return lambda: token
    return str if server is not None else home.device_token


def _output(
    query: str, to: Path | None, state: Path | None, json: bool
) -> Callable[[pa.Table, str], None]:
    from penstock.app.results import line
    from penstock.device.storing import store
    from penstock.feeds.arrow import rows_of

    if to is not None:
        return store(to, state)

    def show(rows: pa.Table, _: str) -> None:
        for row in rows_of(rows):
            texts = ("" if value is None else str(value) for value in row.values())
            print(json_text.dumps(row, default=str) if json else line(query, row, texts))
        sys.stdout.flush()

    return show


def _tell(record: dict[str, Any], json: bool) -> None:
    from penstock.app.words import count, counted
    from penstock.cli.device_text import use_text
    from penstock.cli.power_text import life_text, octets
    from penstock.device.report import battery_lives

    if json:
        print(json_text.dumps({"report": record}, default=str), file=sys.stderr)
        return
    lines = [
        f"{counted(record['rows_in'], 'row')} heard in {counted(record['cycles'], 'cycle')}, "
        f"{count(record['rows_out'])} given"
    ]
    if "energy_j" in record:
        lives = battery_lives([{**record, "device": "", "listening": True}])
        battery = "".join(f"; the battery lasts {life_text(life_s)}" for life_s in lives.values())
        slept = octets(record["slept_bytes"])
        lines.append(f"{use_text(record)}; slept over {slept}{battery}")
    missed, lost = record["missed_cycles"], record["lost_results"]
    lines.append(f"missed {counted(missed, 'cycle')}, lost {counted(lost, 'result')}")
    if record["begun_anew"]:
        times = counted(record["begun_anew"], "time")
        lines.append(f"began anew {times}: the query had been submitted again")
    lines += [f"not heard: {gap}" for gap in record["gaps"]]
    for name, windows in record["touched_windows"].items():
        lines += [f"may lack rows: {name} {start} to {end}" for start, end in windows]
    print("\n".join(lines), file=sys.stderr)
