"""Neighbours in a tree of real processes hand fragments on, whatever happens to them meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import psutil
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.control.records import MoveRecord
from penstock.feeds.generators import generator
from system.under_test import Rows, UnderTest, _comparable
from waiting import until

DAYS, SPEEDUP = 4, 2_400
PARENTS = {"root": None, "north": "root", "south": "root"}
OPTIONS = {"homes": 60, "every": "15min", "days": DAYS}
HOURS = (4, 6, 8, 12, 24)
MOVABLE = [f"last_{hours}" for hours in HOURS]
BALANCE = {
    "lower": 10, "upper": 60, "period": "1s", "utilisation": "memory",
    "budget": "200k", "rule": "wide",
}  # fmt: skip
AFTERWARDS = timedelta(hours=3)
"""So far the results of all queries have to go on after the last fault."""


def deployment() -> str:
    meters = f"generate: meters, homes: 60, every: 15min, days: {DAYS}, speedup: {SPEEDUP}"
    lines = ["streams:"]
    for name in ("north", "south"):
        lines.append(f"  at_{name}: {{source: {{{meters}}}, lateness: 0s, on: {name}}}")
    lines.append("queries:")
    for hours in HOURS:
        lines.append(
            f"  last_{hours}: SELECT home, window.end AS at, sum(kwh) AS kwh, count(*) AS n "
            f"FROM at_north GROUP BY home, window(ts, '{hours} hours', '1 hour')"
        )
    lines.append(
        "  hourly: SELECT home, window.end AS at, max(kwh) AS kwh, count(*) AS n "
        "FROM at_south GROUP BY home, window(ts, '1 hour')"
    )
    return "\n".join(lines) + "\n"


def expected() -> dict[str, Rows]:
    """What an engine that knows no streams makes of the same rows."""
    feed = generator("meters", OPTIONS)
    assert feed.size is not None
    found = {}
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("fed", feed.read(0, feed.size))
        database.execute("CREATE TABLE readings AS SELECT * FROM fed")
        queries = {
            f"last_{hours}": f"""
                SELECT home, moment, sum(kwh), count(*) FROM (
                  SELECT home, kwh, unnest(generate_series(
                    time_bucket(INTERVAL 1 HOUR, ts) + INTERVAL 1 HOUR,
                    time_bucket(INTERVAL 1 HOUR, ts) + INTERVAL {hours} HOURS,
                    INTERVAL 1 HOUR)) AS moment FROM readings)
                GROUP BY home, moment"""
            for hours in HOURS
        }
        queries["hourly"] = """
            SELECT home, time_bucket(INTERVAL 1 HOUR, ts) + INTERVAL 1 HOUR AS moment, max(kwh),
              count(*) FROM readings GROUP BY home, moment"""
        for name, query in queries.items():
            rows = database.sql(query).fetchall()
            found[name] = Rows(_comparable(dict(enumerate(row))) for row in rows)
    return found


def moment_of(row: tuple[object, ...]) -> datetime:
    """The end of the window that a row is about."""
    return datetime.fromisoformat(str(row[1]))


def max_moment(rows: Rows) -> datetime:
    """The end of the last window of a result."""
    return max(map(moment_of, rows))


def up_to(bound: datetime, rows: Rows) -> Rows:
    """The rows of windows that have ended by then."""
    return Rows({row: count for row, count in rows.items() if moment_of(row) <= bound})


def printed(system: UnderTest, *arguments: str) -> str:
    """What a command prints about the system."""
    told = CliRunner().invoke(app, [*arguments, "--home", str(system.home.path)])
    assert told.exit_code == 0, told.output
    return told.output


@pytest.fixture
def system(tmp_path: Path) -> Iterator[UnderTest]:
    made = UnderTest(tmp_path, nodes=3, parents=PARENTS)
    yield made
    made.stop()


def negotiated(system: UnderTest, state: str) -> list[MoveRecord]:
    moves = system.catalog.moves(last=1_000)
    return [move for move in moves if move.by == "neighbours" and move.state == state]


def load_north(system: UnderTest) -> None:
    """Puts everything that can run on north there, which is more than it may bear."""

    def is_there() -> bool:
        units = {unit.name: unit for unit in system.catalog.units()}
        moving = {move.unit for move in system.catalog.moves(open_only=True)}
        away = [
            name
            for name in MOVABLE
            if units[name].node != "north" and name not in moving and units[name].is_up
        ]
        for name in away:
            system.begin_move(name, "north")
        return all(units[name].node == "north" and units[name].is_up for name in MOVABLE)

    until(is_there, 90, lambda: [(u.name, u.node, u.state) for u in system.catalog.units()])


def catch_open_move(system: UnderTest) -> MoveRecord:
    """A move that neighbours have agreed and not finished."""

    found: list[MoveRecord] = []

    def has_one() -> bool:
        moves = system.catalog.moves(open_only=True)
        found[:] = [move for move in moves if move.by == "neighbours"]
        return bool(found)

    until(has_one, 90, lambda: system.log("north")[-3_000:])
    return found[0]


def is_still_open(system: UnderTest, move: MoveRecord) -> bool:
    return any(one.id == move.id for one in system.catalog.moves(open_only=True))


def stop_in_mid_negotiation(system: UnderTest) -> tuple[str, list[psutil.Process]]:
    """SIGSTOP of an owner that gives something away; proves that it was not over yet."""
    for _ in range(5):
        load_north(system)
        system.client.set_balance("hierarchy", BALANCE)
        move = catch_open_move(system)
        stopped = system.pause_node(move.source)
        if is_still_open(system, move):
            return move.source, stopped
        for process in stopped:
            process.resume()
        system.client.set_balance("off")
    raise AssertionError("no negotiation was ever struck")


@pytest.mark.timeout(600)
def test_load_moves_by_negotiation_whatever_happens(system: UnderTest) -> None:
    answers = expected()
    system.client.set_balance("off")
    system.submit("meters", deployment())
    until(lambda: all(system.count(name) > 60 for name in answers), 120, "first results")

    # By agreement alone, load leaves the node that has too much.
    load_north(system)
    system.client.set_balance("hierarchy", BALANCE)
    until(lambda: negotiated(system, "done"), 90, lambda: system.log("north")[-3_000:])
    first = negotiated(system, "done")[0]
    assert (first.source, first.target) == ("north", "root")
    told = printed(system, "logs", "--negotiations")
    assert first.unit in told and ("root: offered" in told or "north: asked for" in told)
    explained = printed(system, "explain", "move", str(first.id))
    assert "offers what it has too much" in explained or "asks for load" in explained
    assert re.search(rf"(took|gave) [\w, ]*{first.unit}", explained), explained
    tree = printed(system, "status", "--tree")
    assert tree.index("root") < tree.index("north") < tree.index("south")

    # Its owner falls asleep in the midst of it, and wakes up after it was replaced.
    system.client.set_balance("off")
    sleeping, stopped = stop_in_mid_negotiation(system)
    until(
        lambda: all(system.node_of(name) == "root" and system.is_up(name) for name in MOVABLE),
        60,
        "everything runs above the node that sleeps",
    )
    for process in stopped:
        process.resume()
    until(
        lambda: any(node.name == sleeping and node.state == "up" for node in system.client.nodes()),
        60,
        "it has joined again",
    )

    # Another one is killed.
    system.client.set_balance("off")
    for _ in range(5):
        load_north(system)
        system.client.set_balance("hierarchy", BALANCE)
        move = catch_open_move(system)
        system.kill_node(move.target)
        if is_still_open(system, move):
            break
        system.client.set_balance("off")
    else:
        raise AssertionError("no negotiation was ever struck")
    system.client.set_balance("off")

    # Everything runs on, and until then nothing was lost or doubled.
    bound = max(map(max_moment, map(system.rows, answers))) + AFTERWARDS
    until(lambda: all(max_moment(system.rows(name)) > bound for name in answers), 60, "results")
    for name, rows in answers.items():
        wanted, found = (up_to(bound, some) for some in (rows, system.rows(name)))
        missing, extra = wanted - found, found - wanted
        assert not missing and not extra, (name, list(missing)[:3], list(extra)[:3])
    (told, *_) = [
        event for event in system.catalog.events(last=2_000, kind="negotiation")
        if event.numbers["told"]
    ]  # fmt: skip
    assert told.text
