"""Groups that move by themselves: from what parts report to moves in the catalog."""

from __future__ import annotations

import pytest

from control.controller.test_group_moves import JOIN, settle
from control.toys import TroubledCatalog
from penstock.channels.group_files import GroupFiles
from penstock.channels.layout import StateLayout
from penstock.control.controller import Controller
from penstock.control.group_balancing import GroupBalancer
from penstock.control.home import Home
from penstock.control.join_answers import ROUND_S, occupancy
from penstock.model.durations import US_PER_S
from penstock.model.measurements import FragmentStatus, NodeSample
from penstock.model.parts import DEFAULT_PERIOD_US

PERIOD_S = DEFAULT_PERIOD_US / US_PER_S
AUTO = JOIN.replace("spread: 2", "spread: auto")


class Balanced:
    """A join in parts, what its nodes report, and the balancer that looks at it."""

    def __init__(self, controller: Controller, catalog: TroubledCatalog, home: Home) -> None:
        self.controller, self.catalog = controller, catalog
        self.balancer = GroupBalancer(catalog, controller.groups)
        self.files = GroupFiles(StateLayout(home.state).groups("pairs"))
        self.now_s = catalog.now_s()
        self.busy_ms: dict[str, int] = {}

    def period(self, every_s: float = PERIOD_S, **fared: tuple[float, float]) -> None:
        """A period in which each part had this occupancy and was busy for so much of the time."""
        nodes = self.controller.groups.join("pairs").nodes
        for half in (0, 1):
            self.now_s += every_s / 2
            for node in sorted(set(nodes.values())):
                here = [f"pairs_part{number}" for number in nodes if nodes[number] == node]
                statuses = {name: self._status(name, half, every_s, *fared[name]) for name in here}
                self.catalog.sample(node, NodeSample(self.now_s, fragments=statuses))
        self.balancer.tick(self.now_s)

    def _status(
        self, name: str, half: int, every_s: float, full: float, busy: float
    ) -> FragmentStatus:
        spent = self.busy_ms.get(name, 0) + round(half * busy * every_s / 2 * 1_000)
        self.busy_ms[name] = spent
        rows = tuple(half * (900 if group == 0 else 100) for group in range(6))
        return FragmentStatus(
            name,
            busy_ms=spent,
            backlog_rows=int(full * 250_000),
            # Who has rows left over has had them for longer than a round.
            waiting_s=ROUND_S + 0.1 if full else 0.9,
            group_rows=rows,
        )

    def begun(self) -> list[tuple[str, str, str]]:
        moves = self.catalog.moves(open_only=True)
        return [(move.unit, move.target, move.by) for move in moves]


@pytest.fixture
def balanced(controller: Controller, catalog: TroubledCatalog, home: Home) -> Balanced:
    controller.submit("joins", "yaml", JOIN, ".")
    controller.tick()
    return Balanced(controller, catalog, home)


def test_a_full_part_gives_a_group_to_an_idle_one(balanced: Balanced) -> None:
    balanced.period(pairs_part1=(0.8, 0.9), pairs_part2=(0.0, 0.1))
    # Group 0 would take most of the load with it: the lighter ones even it out.
    ((what, target, by),) = balanced.begun()
    assert (what, target, by) == ("pairs:2", "b", "balancer")
    (move,) = balanced.catalog.moves(open_only=True)
    assert "80% of its buffer full" in move.reason
    assert move.numbers["parts"]["pairs_part1"] == {"occupancy": 0.8, "busy": 0.9, "groups": 3}


def test_a_busy_part_gives_although_its_buffer_is_empty(balanced: Balanced) -> None:
    balanced.period(pairs_part1=(0.0, 0.97), pairs_part2=(0.0, 0.1))
    assert [move[:2] for move in balanced.begun()] == [("pairs:2", "b")]


def test_nothing_moves_where_nothing_has_to(balanced: Balanced) -> None:
    balanced.period(pairs_part1=(0.1, 0.5), pairs_part2=(0.0, 0.1))
    balanced.period(pairs_part1=(0.8, 0.9), pairs_part2=(0.7, 0.9))
    assert balanced.begun() == []


def test_nothing_moves_where_people_do_it_by_hand(
    controller: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    text = JOIN.replace("groups: 6", "groups: 6, moves: off")
    controller.submit("joins", "yaml", text, ".")
    controller.tick()
    balanced = Balanced(controller, catalog, home)
    balanced.period(pairs_part1=(0.8, 0.9), pairs_part2=(0.0, 0.1))
    assert balanced.begun() == []


def test_a_part_that_keeps_up_is_idle_however_many_rows_come() -> None:
    on_their_way = {"waiting_s": 0.9, "backlog_rows": 100_000}
    assert occupancy(FragmentStatus("pairs_part2", **on_their_way)) == 0.0
    left_over = on_their_way | {"waiting_s": ROUND_S + 1}
    assert occupancy(FragmentStatus("pairs_part2", **left_over)) == 0.4


def test_parts_are_compared_as_often_as_is_asked_for(
    controller: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    text = JOIN.replace("groups: 6", "groups: 6, every: 5s")
    controller.submit("joins", "yaml", text, ".")
    controller.tick()
    balanced = Balanced(controller, catalog, home)
    balanced.balancer.tick(balanced.now_s)
    balanced.period(4.0, pairs_part1=(0.8, 0.9), pairs_part2=(0.0, 0.1))
    assert balanced.begun() == [], "its period is not over"
    balanced.period(2.0, pairs_part1=(0.8, 0.9), pairs_part2=(0.0, 0.1))
    assert [move[:2] for move in balanced.begun()] == [("pairs:2", "b")]


def test_it_waits_for_what_is_under_way(balanced: Balanced) -> None:
    balanced.period(pairs_part1=(0.8, 0.9), pairs_part2=(0.0, 0.1))
    balanced.period(pairs_part1=(0.8, 0.9), pairs_part2=(0.0, 0.1))
    assert len(balanced.begun()) == 1
    settle(balanced.controller, balanced.files)
    balanced.controller.tick()
    balanced.period(pairs_part1=(0.8, 0.9), pairs_part2=(0.0, 0.1))
    assert [move[1] for move in balanced.begun()] == ["b"]
    assert len(balanced.catalog.moves()) == 2


def test_a_part_that_nobody_has_measured_moves_nothing(balanced: Balanced) -> None:
    balanced.now_s += PERIOD_S
    balanced.balancer.tick(balanced.now_s)
    assert balanced.begun() == []


def test_the_number_of_parts_follows_the_load(
    controller: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    controller.submit("joins", "yaml", AUTO, ".")
    controller.tick()
    balanced = Balanced(controller, catalog, home)
    names = [f"pairs_part{number}" for number in range(1, 5)]
    idle = dict.fromkeys(names, (0.0, 0.05))

    def parts_with_groups() -> int:
        return len(set(controller.groups.join("pairs").table.owners))

    assert parts_with_groups() == 4
    for _ in range(12):
        balanced.period(**idle)
        if controller.groups.join("pairs").table.moving:
            settle(controller, balanced.files)
            controller.tick()
    assert parts_with_groups() == 1
    assert any(event.kind == "part released" for event in catalog.events())

    owner = controller.groups.join("pairs").table.owners[0]
    full = idle | {f"pairs_part{owner}": (0.9, 0.95)}
    balanced.period(**full)
    assert parts_with_groups() == 2
    settle(controller, balanced.files)
    controller.tick()
    assert any(event.kind == "part added" for event in catalog.events())
    nodes = controller.groups.join("pairs").nodes
    assert len({nodes[part] for part in set(controller.groups.join("pairs").table.owners)}) == 2
