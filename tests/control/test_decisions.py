"""Decisions by example: who gets what, how a move goes on, and who has to wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from control.made_up import NOW_S, dead, failed, move, node, running, told, unit
from penstock.control.decisions import HEALTHY_AFTER_S, Assign, decide, may_start
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.returning import (
    AWAITED_AFTER_STANDSTILL_S,
    AWAITED_AT_START_S,
    AWAITED_WITH_PINS_S,
    STEADY_AFTER_S,
    Standstill,
)

A, B, C = node("a"), node("b"), node("c")


def decided(
    units: Iterable[UnitRecord],
    nodes: Iterable[NodeRecord] = (A, B),
    moves: Iterable[MoveRecord] = (),
    now_s: float = NOW_S,
    began_s: float = 0.0,
) -> list[str]:
    return [told(one) for one in decide([*units], [*nodes], [*moves], now_s, began_s)]


class TestPlacing:
    def test_nothing_is_done_where_all_is_well(self) -> None:
        assert decided([running("q", "a"), running("r", "b")]) == []
        assert decided([]) == []

    def test_a_unit_that_its_node_has_not_started_yet_is_left_to_it(self) -> None:
        assert decided([unit("q", "a")]) == []

    def test_a_new_unit_goes_where_least_is_done(self) -> None:
        there = [running("r", "a"), running("s", "a"), running("t", "b")]
        assert decided([unit("q"), *there]) == ["q to b: new"]

    def test_equal_nodes_are_taken_in_the_order_of_their_names(self) -> None:
        assert decided([unit("q")], [B, A]) == ["q to a: new"]

    def test_cores_count(self) -> None:
        there = [running("r", "a"), running("s", "a"), running("t", "b")]
        assert decided([unit("q"), *there], [node("a", cores=4), B]) == ["q to a: new"]

    def test_several_new_units_are_spread(self) -> None:
        assert decided([unit("q"), unit("r"), unit("s")]) == [
            "q to a: new",
            "r to b: new",
            "s to a: new",
        ]

    def test_what_has_finished_is_no_load(self) -> None:
        done = [running(name, "a", state="finished") for name in ("r", "s")]
        assert decided([unit("q"), *done, running("t", "b")]) == ["q to a: new"]

    def test_without_a_living_node_everything_waits(self) -> None:
        assert decided([unit("q"), running("r", "a")], [dead("a")]) == []
        assert decided([unit("q")], []) == []

    def test_a_lease_ends_at_its_last_moment(self) -> None:
        assert decided([running("q", "a")], [node("a", lease_until_s=NOW_S), B]) == [
            "q to b: node a fell silent"
        ]

    def test_a_unit_goes_where_it_was_written_to_run(self) -> None:
        assert decided([unit("q", pinned="b"), unit("r", pinned="b")]) == [
            "q to b: new",
            "r to b: new",
        ]

    def test_or_where_a_strategy_has_put_it_at_first(self) -> None:
        assert decided([unit("q", planned="b")]) == ["q to b: new"]
        assert decided([unit("q", planned="b", pinned="a")]) == ["q to a: new"]
        assert decided([unit("q", planned="z")]) == ["q to a: new"]
        again = running("q", "z", planned="b")
        assert decided([again]) == ["q to a: node z fell silent"]

    def test_or_elsewhere_while_that_is_not_there(self) -> None:
        longer_s = NOW_S + AWAITED_WITH_PINS_S
        assert decided([unit("q", pinned="b")], [A, dead("b")]) == []
        a = node("a", lease_until_s=longer_s + 5)
        assert decided([unit("q", pinned="b")], [a, dead("b")], now_s=longer_s) == ["q to a: new"]
        assert decided([unit("q", pinned="z")]) == ["q to a: new"]


class TestFailover:
    def test_the_units_of_a_dead_node_are_spread_over_the_others(self) -> None:
        units = [running("q", "c"), running("r", "c"), running("s", "a")]
        assert decided(units, [A, B, dead("c")]) == [
            "q to b: node c fell silent",
            "r to a: node c fell silent",
        ]

    def test_a_node_that_is_not_even_known_counts_as_dead(self) -> None:
        assert decided([running("q", "z")]) == ["q to a: node z fell silent"]

    @pytest.mark.parametrize("state", ["waiting", "running", "held back", "failed", "released"])
    def test_whatever_they_were_doing(self, state: str) -> None:
        assert decided([running("q", "c", state=state, restarts=3)], [A, dead("c")]) == [
            "q to a: node c fell silent"
        ]

    def test_what_has_finished_or_is_dropped_is_left_alone(self) -> None:
        finished = running("q", "c", state="finished")
        assert decided([finished, running("r", "c", is_dropped=True)], [A, dead("c")]) == []
        assert decided([unit("q", is_dropped=True)]) == []

    def test_but_not_if_it_was_a_former_owner_that_had_finished(self) -> None:
        again = unit("q", "c", 2, state="finished", reported_epoch=1)
        assert decided([again], [A, dead("c")]) == ["q to a: node c fell silent"]

    def test_a_unit_is_not_handed_on_while_the_owner_before_may_run_it(self) -> None:
        """Its owner waited for a, and died; the next one would see nothing but a dead owner."""
        waited = unit("q", "b", 2, previous="a", released_epoch=0)
        assert decided([waited], [A, dead("b"), C]) == []
        assert decided([waited], [dead("a"), dead("b"), C]) == ["q to c: node b fell silent"]
        stopped = unit("q", "b", 2, previous="a", released_epoch=1)
        assert decided([stopped], [A, dead("b"), C]) == ["q to a: node b fell silent"]

    def test_what_is_pinned_waits_for_its_node_and_then_goes_elsewhere_for_a_while(self) -> None:
        pinned = running("q", "c", pinned="c")
        assert decided([pinned], [A, dead("c")]) == []
        later_s = NOW_S + AWAITED_WITH_PINS_S
        a = node("a", lease_until_s=later_s + 5)
        assert decided([pinned], [a, dead("c")], now_s=later_s) == ["q to a: node c fell silent"]

    def test_it_is_remembered_where_they_belong(self) -> None:
        def belongs(unit: UnitRecord) -> str | None:
            (given,) = decide([unit], [A, dead("c")], [], NOW_S + 4, began_s=0.0)
            assert isinstance(given, Assign)
            return given.belongs

        assert belongs(running("q", "c")) == "c"
        assert belongs(running("q", "c", belongs="b")) == "b", "it was on c for a while only"
        assert belongs(running("q", "c", pinned="a")) is None, "it comes to where it is pinned"
        assert belongs(failed("q", "a", belongs="c")) == "c"


class TestAtTheStartOfTheSystem:
    """Nodes were stopped with the whole system, and are started with it, one after the other."""

    LEFT = node("b", lease_until_s=0.0)

    def test_units_wait_for_their_node(self) -> None:
        stopped = running("q", "b", released_epoch=1)
        assert decided([stopped], [A, self.LEFT], began_s=NOW_S - 5) == []
        assert decided([stopped], [A, B], began_s=NOW_S - 5) == ["q to b: node b had stopped it"]

    def test_but_not_for_ever(self) -> None:
        stopped = running("q", "b", released_epoch=1)
        assert decided([stopped], [A, self.LEFT], began_s=NOW_S - AWAITED_AT_START_S) == [
            "q to a: node b fell silent"
        ]

    def test_nor_for_a_node_that_dies_afterwards(self) -> None:
        assert decided([running("q", "b")], [A, dead("b")], began_s=NOW_S - 5) == [
            "q to a: node b fell silent"
        ]


class TestAfterAStandstill:
    """Nobody was heard: an idle node is back at once, one that has to stop its work later."""

    LATE_S = NOW_S - AWAITED_AFTER_STANDSTILL_S

    def given(self, ended_s: float, standstill: Standstill) -> list[str]:
        nodes = [A, node("b", lease_until_s=ended_s)]
        given = decide([running("q", "b")], nodes, [], NOW_S, 0.0, None, standstill)
        return [told(one) for one in given]

    def test_one_whose_lease_ended_in_it_is_waited_for(self) -> None:
        ended_s = self.LATE_S - 1
        assert self.given(ended_s, Standstill(ended_s - 5, self.LATE_S + 0.1)) == []

    def test_but_not_for_long(self) -> None:
        ended_s = self.LATE_S - 1
        assert self.given(ended_s, Standstill(ended_s - 5, self.LATE_S)) == [
            "q to a: node b fell silent"
        ]

    def test_nor_one_that_was_silent_before(self) -> None:
        assert self.given(NOW_S - 9, Standstill(NOW_S - 9, NOW_S - 1)) == [
            "q to a: node b fell silent"
        ]


class TestGoingBack:
    STEADY = node("b", joined_s=NOW_S - STEADY_AFTER_S)

    def test_once_its_node_has_been_up_for_a_while(self) -> None:
        away = running("q", "a", 2, belongs="b")
        assert decided([away], [A, self.STEADY]) == ["q back to b: node b is back"]
        assert decided([away], [A, node("b", joined_s=NOW_S - STEADY_AFTER_S + 1)]) == []
        assert decided([away], [A, dead("b")]) == []
        assert decided([away], [A]) == []

    def test_even_if_it_has_failed_where_it_is(self) -> None:
        away = failed("q", "a", 2, belongs="b", restarts=3)
        assert decided([away], [A, self.STEADY]) == ["q back to b: node b is back"]

    def test_a_few_at_a_time(self) -> None:
        away = [running(name, "a", 2, belongs="b") for name in "qrst"]
        assert len(decided(away, [A, self.STEADY])) == 2
        begun = move("q", numbers={"by": "return"})
        assert decided(away, [A, self.STEADY], [begun]) == ["r back to b: node b is back"]

    def test_a_few_times(self) -> None:
        away = running("q", "a", 2, belongs="b", returns=3)
        assert decided([away], [A, self.STEADY]) == []
        rested = running("q", "a", 2, belongs="b", returns=3, since_s=NOW_S - HEALTHY_AFTER_S)
        assert decided([rested], [A, self.STEADY]) == ["q has been well"]

    @pytest.mark.parametrize(
        "told",
        [{"state": "finished"}, {"is_dropped": True}, {"state": "waiting"}, {"belongs": "a"}],
    )
    def test_only_what_runs_elsewhere(self, told: dict[str, Any]) -> None:
        assert decided([running("q", "a", 2, **{"belongs": "b", **told})], [A, self.STEADY]) == []

    def test_what_could_not_go_back_still_belongs_there(self) -> None:
        there, moving = failed("q", "b", 3, previous="a"), move(state="moving")
        home = replace(moving, numbers={"by": "return"})
        back = [decide([there], [A, B], [one], NOW_S)[0] for one in (moving, home)]
        assert [one.belongs for one in back if isinstance(one, Assign)] == [None, "b"]

    def test_what_people_move_stays_where_they_want_it(self) -> None:
        asked = move(is_warm=True, source="a", target="c")
        given = decide([running("q", "a", 2, belongs="b")], [A, B, C], [asked], NOW_S)[0]
        assert isinstance(given, Assign)
        assert (given.node, given.belongs) == ("c", None)


class TestRestarting:
    @pytest.mark.parametrize("restarts", [0, 1, 2])
    def test_a_failed_unit_is_started_again(self, restarts: int) -> None:
        assert decided([failed("q", "a", restarts=restarts)]) == [
            "q again on a: started again after: no room"
        ]

    def test_but_three_times_at_most(self) -> None:
        assert decided([failed("q", "a", restarts=3)]) == []

    def test_the_failure_of_a_former_owner_does_not_count(self) -> None:
        assert decided([failed("q", "a", 2, reported_epoch=1, released_epoch=1)]) == []

    def test_dropped_units_are_not_started_again(self) -> None:
        assert decided([failed("q", "a", is_dropped=True)]) == []

    def test_what_a_node_had_stopped_gets_a_new_epoch_when_the_node_is_back(self) -> None:
        """Nobody would wait for an owner that has said already that it stopped."""
        assert decided([running("q", "a", 3, released_epoch=3)]) == [
            "q to a: node a had stopped it"
        ]


class TestMoves:
    def test_it_waits_for_the_target_to_be_ready(self) -> None:
        assert decided([running("q", "a")], moves=[move()]) == []

    @pytest.mark.parametrize(("reason", "why"), [("", "moved"), ("asked for", "asked for")])
    def test_then_the_unit_changes_hands(self, reason: str, why: str) -> None:
        assert decided([running("q", "a")], moves=[move(is_warm=True, reason=reason)]) == [
            f"q to b: {why}",
            "move of q moving",
        ]

    def test_a_target_that_takes_too_long_gets_it_unprepared(self) -> None:
        begun = move(created_s=NOW_S - 30)
        assert decided([running("q", "a")], moves=[begun]) == []
        assert decided([running("q", "a")], moves=[begun], now_s=NOW_S + 0.1) == [
            "q to b: moved",
            "move of q moving",
        ]

    def test_a_controller_may_die_before_it_has_said_so(self) -> None:
        given = unit("q", "b", 2, previous="a", released_epoch=1)
        assert decided([given], moves=[move(is_warm=True)]) == ["move of q moving"]
        assert decided([given], [A, dead("b")], [move()])[0] == "move of q moving"

    def test_it_waits_for_the_target_to_start(self) -> None:
        assert decided([running("q", "b", 2, reported_epoch=1)], moves=[move(state="moving")]) == []

    @pytest.mark.parametrize("state", ["running", "held back", "finished"])
    def test_and_is_done_when_it_has(self, state: str) -> None:
        assert decided([running("q", "b", 2, state=state)], moves=[move(state="moving")]) == [
            "move of q done"
        ]

    @pytest.mark.parametrize("state", ["done", "failed"])
    def test_what_has_ended_stays_so(self, state: str) -> None:
        assert decided([running("q", "a")], moves=[move(state=state, is_warm=True)]) == []

    def test_a_unit_that_is_gone_takes_its_moves_with_it(self) -> None:
        for state in ("preparing", "moving"):
            assert decided([running("r", "a")], moves=[move(state=state, is_warm=True)]) == [
                "move of q failed: q is gone"
            ]

    def test_a_target_that_cannot_prepare_ends_it(self) -> None:
        assert decided([running("q", "a")], moves=[move(error="no memory")]) == [
            "move of q failed: no memory"
        ]

    def test_a_unit_that_fails_meanwhile_is_started_by_the_target(self) -> None:
        assert decided([failed("q", "a")], moves=[move()]) == []
        assert decided([failed("q", "a")], moves=[move(is_warm=True)]) == [
            "q to b: moved",
            "move of q moving",
        ]

    def test_moves_of_one_plan_go_on_side_by_side(self) -> None:
        units = [running("q", "a"), running("r", "a")]
        moves = [move("q", is_warm=True), move("r", is_warm=True)]
        assert decided(units, moves=moves) == [
            "q to b: moved",
            "move of q moving",
            "r to b: moved",
            "move of r moving",
        ]

    def test_what_a_target_is_not_free_for_yet_waits(self) -> None:
        waiting = unit("q", "a", 2, previous="c", released_epoch=0)
        assert decided([waiting], [A, B, C], [move(is_warm=True)]) == []


class TestMovesThatGoWrong:
    def test_a_target_that_dies_while_it_prepares(self) -> None:
        for warm in (True, False):
            assert decided([running("q", "a")], [A, dead("b")], [move(is_warm=warm)]) == [
                "move of q failed: node b fell silent"
            ]

    def test_a_target_that_dies_before_it_has_started(self) -> None:
        given = unit("q", "b", 2, previous="a", state="running", reported_epoch=1)
        moving = move(state="moving")
        assert decided([given], [A, dead("b")], [moving]) == ["q to a: node b fell silent"]
        back = unit("q", "a", 3, previous="b", state="running", reported_epoch=1)
        assert decided([back], [A, dead("b")], [moving]) == [
            "move of q failed: q was given to a meanwhile"
        ]

    def test_a_target_that_dies_when_it_has_started(self) -> None:
        there = running("q", "b", 2, previous="a")
        assert decided([there], [A, dead("b")], [move(state="moving")]) == [
            "move of q done",
            "q to a: node b fell silent",
        ]

    def test_a_source_that_dies_when_the_target_is_ready(self) -> None:
        found = decided([running("q", "a")], [dead("a"), B, C], [move(is_warm=True)])
        assert found[:2] == ["q to b: moved", "move of q moving"]

    def test_a_source_that_dies_before(self) -> None:
        nodes = [dead("a"), node("b", cores=1), node("c", cores=8)]
        assert decided([running("q", "a")], nodes, [move()]) == ["q to b: node a fell silent"]
        assert decided([unit("q", "c", 2, previous="a")], nodes, [move()]) == [
            "move of q failed: q has left a meanwhile"
        ]

    def test_a_target_that_cannot_start_it_gives_it_back(self) -> None:
        assert decided([failed("q", "b", 2, previous="a")], moves=[move(state="moving")]) == [
            "q to a: back to a: no room",
            "move of q failed: no room",
        ]

    def test_or_tries_again_if_there_is_nobody_to_give_it_back_to(self) -> None:
        there, nodes = failed("q", "b", 2, previous="a"), [dead("a"), B]
        assert decided([there], nodes, [move(state="moving")]) == ["move of q failed: no room"]
        assert decided([there], nodes) == ["q again on b: started again after: no room"]

    def test_a_failure_from_before_the_move_is_not_the_targets(self) -> None:
        there = failed("q", "b", 2, previous="a", reported_epoch=1, released_epoch=1)
        assert decided([there], moves=[move(state="moving")]) == []

    def test_a_unit_that_finishes_meanwhile_stays(self) -> None:
        assert decided([running("q", "a", state="finished")], moves=[move(is_warm=True)]) == [
            "move of q failed: q has finished meanwhile"
        ]

    @pytest.mark.parametrize("told", [{"is_warm": True}, {"state": "moving"}])
    def test_a_unit_that_is_dropped_meanwhile_stays(self, told: dict[str, Any]) -> None:
        assert decided([running("q", "a", is_dropped=True)], moves=[move(**told)]) == [
            "move of q failed: q is being dropped"
        ]


class TestWaiting:
    """Whether b, the owner of q, may start it."""

    def test_the_first_owner_need_not_wait(self) -> None:
        assert may_start(unit("q", "b"), [A, B], NOW_S)

    def test_nor_one_who_had_it_before(self) -> None:
        assert may_start(unit("q", "b", 3, previous="b", released_epoch=1), [A, B], NOW_S)

    def test_the_next_waits_for_the_former_to_stop(self) -> None:
        assert not may_start(unit("q", "b", 2, previous="a", released_epoch=0), [A, B], NOW_S)
        assert may_start(unit("q", "b", 2, previous="a", released_epoch=1), [A, B], NOW_S)

    def test_an_older_release_is_not_enough(self) -> None:
        assert not may_start(unit("q", "b", 9, previous="a", released_epoch=7), [A, B], NOW_S)

    def test_or_for_its_lease_to_run_out(self) -> None:
        given = unit("q", "b", 2, previous="a", released_epoch=0)
        assert may_start(given, [dead("a"), B], NOW_S)
        assert may_start(given, [B], NOW_S)
        assert not may_start(given, [node("a", lease_until_s=NOW_S + 1e-3), B], NOW_S)
        assert may_start(given, [node("a", lease_until_s=NOW_S), B], NOW_S)

    def test_who_has_said_that_it_stopped_may_not_start_again(self) -> None:
        """The next owner would not wait for it a second time."""
        for previous in (None, "a", "b"):
            given = unit("q", "b", 2, previous=previous, released_epoch=2)
            assert not may_start(given, [dead("a"), B], NOW_S)


class TestRestartsAreForgiven:
    def test_after_a_stretch_of_health(self) -> None:
        well_s = NOW_S - HEALTHY_AFTER_S
        assert decided([running("q", "a", restarts=2, since_s=well_s)]) == ["q has been well"]
        assert decided([running("q", "a", restarts=2, since_s=well_s + 1)]) == []

    def test_only_what_runs_and_had_to_be_restarted(self) -> None:
        assert decided([running("q", "a", since_s=0.0)]) == []
        assert decided([failed("q", "a", restarts=3, since_s=0.0)]) == []
        assert decided([running("q", "a", restarts=1, since_s=None)]) == []


class TestStreamsNobodyReads:
    def test_they_are_given_to_nobody(self) -> None:
        assert decided([unit("q", is_unread=True)]) == []


class TestWhatDoesNotStop:
    """The unit was given to b; a says that it could not stop it."""

    def test_goes_back(self) -> None:
        there = unit("q", "b", 2, previous="a", released_epoch=0)
        moving = move(state="moving", error="it hangs")
        assert decided([there], moves=[moving]) == [
            "q to a: back to a: it hangs",
            "move of q failed: it hangs",
        ]

    def test_unless_it_stopped_after_all(self) -> None:
        there = running("q", "b", 2, previous="a", released_epoch=1)
        moving = move(state="moving", error="it hangs")
        assert decided([there], moves=[moving]) == ["move of q done"]

    def test_what_is_being_dropped_only_ends_its_move(self) -> None:
        there = unit("q", "b", 2, previous="a", released_epoch=0, is_dropped=True)
        moving = move(state="moving", error="it hangs")
        assert decided([there], moves=[moving]) == ["move of q failed: it hangs"]


def test_a_failover_that_fails_sends_nothing_back() -> None:
    there = failed("q", "b", 2, previous="a")
    moving = move(state="moving", numbers={"by": "failover"})
    assert decided([there], moves=[moving]) == ["move of q failed: no room"]
