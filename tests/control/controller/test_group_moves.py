"""Groups of a join: asked for, entered into its table once, done when the parts say so."""

from __future__ import annotations

from contextlib import suppress

import pytest

from control.toys import TroubledCatalog
from penstock.channels.group_files import GroupFiles
from penstock.channels.layout import StateLayout
from penstock.control.answers import metrics_of, operators_answer, system_answer
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.join_answers import joins_answer
from penstock.control.records import MoveRecord
from penstock.control.resilience import system_problem
from penstock.control.view import graph
from penstock.errors import InputError
from penstock.model.group_table import GroupTable
from penstock.model.moves import Move

JOIN = """
streams:
  asked: {source: {directory: in, format: csv}, schema: "ts timestamp, k string", event_time: ts, lateness: 1s}
  given: {source: {directory: in, format: csv}, schema: "at timestamp, key string", event_time: at, lateness: 1s}
queries:
  pairs:
    sql: SELECT a.ts, a.k FROM asked a JOIN given g ON a.k = g.key AND g.at BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS
    join: {spread: 2, groups: 6}
  counts: SELECT window.start AS at, count(*) AS n FROM pairs GROUP BY window(ts, '10 s')
"""  # noqa: E501


@pytest.fixture
def joining(controller: Controller, catalog: TroubledCatalog) -> Controller:
    """Parts of a join on two nodes."""
    controller.submit("joins", "yaml", JOIN, ".")
    controller.tick()
    return controller


@pytest.fixture
def files(home: Home) -> GroupFiles:
    return GroupFiles(StateLayout(home.state).groups("pairs"))


def table(controller: Controller) -> GroupTable:
    return controller.groups.join("pairs").table


def ask(controller: Controller, what: str, node: str) -> MoveRecord:
    (move,) = controller.move([Move(what, node)])
    return move


def settle(controller: Controller, files: GroupFiles) -> None:
    """As parts do that have taken what is theirs."""
    now = table(controller)
    assert files.propose(now.settled(now.moving, dict.fromkeys(now.moving, 0.25)))


def test_parts_run_apart_and_the_result_is_one_stream(
    joining: Controller, catalog: TroubledCatalog
) -> None:
    nodes = {unit.name: unit.node for unit in catalog.units() if unit.kind == "fragment"}
    assert nodes["pairs_part1"] != nodes["pairs_part2"]
    system = joining.system()
    assert system.units["pairs"].reads == ("pairs_part1", "pairs_part2")
    assert system.units["counts"].reads == ("pairs",)
    assert "pairs" in system.streams
    assert "pairs_part1" not in system.streams
    assert joining.channel("asked").has_reader("pairs_part2")
    planned = {unit.name: unit.planned for unit in catalog.units() if unit.kind == "fragment"}
    assert None not in planned.values(), "the strategy knows the join as a whole"


def test_a_move_is_done_when_the_parts_say_so(joining: Controller, files: GroupFiles) -> None:
    move = ask(joining, "pairs:0,2", "b")
    assert (move.unit, move.source, move.target, move.state) == ("pairs:0,2", "a", "b", "moving")
    assert table(joining).groups_of(2) == {0, 1, 2, 3, 5}
    joining.tick()
    assert joining.groups.join("pairs").table.moving == (0, 2)
    settle(joining, files)
    joining.tick()
    done = joining._catalog.move(move.id)
    assert done is not None
    assert (done.state, done.by, done.numbers["groups"]) == ("done", "people", [0, 2])
    assert done.pause_s == 0.25


def test_groups_that_are_there_already_stay(joining: Controller) -> None:
    assert ask(joining, "pairs:0-3", "b").unit == "pairs:0,2"


DEATHS = {
    "asked": (TroubledCatalog, "add_moves", False),
    "recorded": (TroubledCatalog, "add_moves", True),
    "entering": (GroupFiles, "propose", False),
    "entered": (GroupFiles, "propose", True),
    "ending": (TroubledCatalog, "change_move", False),
    "ended": (TroubledCatalog, "change_move", True),
}
"""Where a controller dies in the move of a group: before or after what it writes."""


class Died(BaseException):
    """Stands for the end of a controller."""


@pytest.mark.parametrize("step", DEATHS)
def test_a_controller_that_dies_at_any_step_is_followed_by_one_that_goes_on(
    joining: Controller,
    catalog: TroubledCatalog,
    home: Home,
    files: GroupFiles,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    where, name, is_after = DEATHS[step]
    work, deaths = getattr(where, name), []

    def die(*given: object, **more: object) -> object:
        # A controller also adds the moves of units, of which there are none here.
        if deaths or [] in given:
            return work(*given, **more)
        deaths.append(work(*given, **more) if is_after else None)
        raise Died

    monkeypatch.setattr(where, name, die)
    with suppress(Died):
        ask(joining, "pairs:0", "b")
    later = Controller(home, catalog, began_s=0.0)
    if step == "asked":
        assert not catalog.moves(), "nobody knows of it"
        ask(later, "pairs:0", "b")
    later.tick()
    assert table(later).moving == (0,)
    settle(later, files)
    with suppress(Died):
        later.tick()
    assert len(deaths) == 1, "the fault must have struck"
    last = Controller(home, catalog, began_s=0.0)
    last.tick()
    (move,) = catalog.moves()
    assert (move.state, move.pause_s) == ("done", 0.25)
    assert (table(last).owners[0], table(last).epochs[0], table(last).moving) == (2, 1, ())


def test_a_move_that_comes_too_late_fails_by_name(joining: Controller, files: GroupFiles) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GroupFiles, "propose", lambda *_: False)
        move = ask(joining, "pairs:0", "b")
    assert files.propose(table(joining).closing(1))
    joining.tick()
    failed = joining._catalog.move(move.id)
    assert failed is not None
    assert failed.state == "failed"
    assert "has read everything" in failed.error


@pytest.mark.parametrize(
    ("what", "node", "said"),
    [
        ("counts:1", "b", "counts is no join in parts"),
        ("pairs:9", "b", "9 names no groups"),
        ("pairs:1", "b", "b has 1 already"),
        ("pairs:0", "z", "no part of pairs runs on z"),
    ],
)
def test_what_makes_no_sense_is_refused(
    joining: Controller, what: str, node: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        ask(joining, what, node)
    assert not joining._catalog.moves(open_only=True)


def test_a_group_that_moves_cannot_be_moved(joining: Controller) -> None:
    ask(joining, "pairs:0", "b")
    with pytest.raises(InputError, match="group 0 is being moved already"):
        ask(joining, "pairs:0", "a")


def test_what_is_said_of_joins(joining: Controller, home: Home) -> None:
    ask(joining, "pairs:0", "b")
    (join,) = joins_answer(joining.groups, joining._catalog, home.state)
    assert [(part.node, part.groups, part.arriving) for part in join.parts] == [
        ("a", [2, 4], []),
        ("b", [0, 1, 3, 5], [0]),
    ]


def test_all_that_is_said_of_a_system_can_be_said_of_parts(
    joining: Controller, catalog: TroubledCatalog
) -> None:
    system = joining.system()
    names = {fragment.name for fragment in system_answer(catalog, system).fragments}
    assert {"pairs", "pairs_part1", "pairs_part2", "counts"} <= names
    assert {unit.name for unit in graph(catalog, system)} >= {"pairs", "pairs_part1"}
    assert metrics_of(catalog, system).fragments
    assert operators_answer(catalog, system) == []
    problem = system_problem(system, catalog.nodes(), joining.estimates())
    assert not any("part" in name for unit in problem.members for name in unit)
