"""A live node's part in a negotiation: what it says, refuses, and has recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from control.made_up import NOW_S, node, running
from penstock.balance.hierarchy.messages import (
    MessageType,
    NegotiationId,
    NegotiationMessage,
    Portion,
)
from penstock.balance.hierarchy.settings import HierarchySettings, Utilisation
from penstock.balance.hierarchy.transfers import DownRule, Transfer
from penstock.control.negotiator import (
    BeginMoves,
    ChangeHands,
    EndMoves,
    HandsChanged,
    MovesBegun,
    Negotiator,
    RefuseMessage,
    SendMessage,
    TellNegotiation,
    TreeInstruction,
)
from penstock.control.records import MoveRecord
from penstock.control.tree_situation import TreeSituation, look_around
from penstock.control.tree_sizes import MeasuredSizes
from penstock.model.node_tree import NodeTree
from penstock.place.tree_placing import TreeWiring

TREE = NodeTree({"root": None, "a": "root", "b": "root", "c": "a"})
WIRING = TreeWiring(
    TREE,
    {"m": {}, "f": {"m": "m"}, "g": {"f": "f"}, "p": {"m": "m"}, "k": {"g": "g"}},
    {"m": "c"},
)
SETTINGS = HierarchySettings(lower=20, upper=60, hold_s=5.0, rest_periods=0)
TYPE = MessageType


def situation(at: str = "a", **told: Any) -> TreeSituation:
    """f, g and the pinned p run on a, k on the root; m comes in at c."""
    units = {
        "f": running("f", "a", 3),
        "g": running("g", "a", 2),
        "p": running("p", "a", pinned="a"),
        "k": running("k", "root"),
    }
    nodes = {name: node(name, parent=parent) for name, parent in TREE.parents.items()}
    percent = {"f": 30.0, "g": 25.0, "p": 20.0, "k": 5.0}
    sizes = MeasuredSizes(dict.fromkeys(percent, 1.0), percent, cpu_besides=7.0)
    made = TreeSituation(at, f"{at}-1", WIRING, units, nodes, sizes=sizes, catalog_s=NOW_S)
    return replace(made, **told)


def negotiator(at: str = "a", now_s: float = 0.0, **told: Any) -> Negotiator:
    rng = np.random.default_rng(1)
    return Negotiator(at, SETTINGS, rng, 7, situation(at, **told), now_s)


def said(done: list[TreeInstruction]) -> list[NegotiationMessage]:
    return [one.message for one in done if isinstance(one, SendMessage)]


def test_what_it_sees_of_itself() -> None:
    view = look_around(situation(), SETTINGS, {})
    assert (view.utilisation, view.epochs) == (75.0, {"f": 3, "g": 2, "p": 1})
    # p is pinned; what reads f goes up with it, what feeds g goes down with it.
    assert view.transfers == (
        Transfer("a", "root", ("f", "g")),
        Transfer("a", "c", ("f",)),
        Transfer("a", "root", ("g",)),
        Transfer("a", "c", ("f", "g")),
    )


@pytest.mark.parametrize(("what", "used"), [("cpu", 10.0), ("memory", 75.0), ("max", 75.0)])
def test_what_is_balanced(what: str, used: float) -> None:
    settings = replace(SETTINGS, utilisation=Utilisation(what))
    assert look_around(situation(), settings, {}).utilisation == used


def test_what_came_and_was_not_measured_counts_as_promised() -> None:
    sizes = MeasuredSizes({"f": 1.0, "p": 1.0}, {"f": 30.0, "p": 20.0})
    view = look_around(situation(sizes=sizes), SETTINGS, {"g": 11.0})
    assert (view.utilisation, view.sizes["g"]) == (61.0, 11.0)


def test_what_is_on_its_way_or_bound_stays() -> None:
    moving = MoveRecord(1, "g", "a", "root", "preparing", False, NOW_S)
    assert look_around(situation(moves=(moving,)), SETTINGS, {}).transfers == (
        Transfer("a", "c", ("f",)),
    )
    wide = replace(SETTINGS, rule=DownRule.WIDE)
    assert look_around(situation(bound=frozenset("fg")), wide, {}).transfers == ()


def test_dead_neighbours_are_not_asked() -> None:
    nodes = dict(situation().nodes)
    nodes["root"] = node("root", is_alive=False)
    assert situation(nodes=nodes).neighbours == ("c",)


def agreed() -> tuple[Negotiator, NegotiationId, HandsChanged | MovesBegun, list[TreeInstruction]]:
    """An overloaded node whose parent takes g."""
    found = negotiator()
    asked = said(found.tick(12.0))
    assert [(one.receiver, one.type) for one in asked] == [
        ("root", TYPE.OFFER_REQUEST),
        ("c", TYPE.OFFER_REQUEST),
    ]
    name = asked[0].negotiation
    reply = NegotiationMessage(
        "root", "a", TYPE.OFFER_REPLY, name, transfers=(Portion(("g",), 25.0),)
    )
    busy = NegotiationMessage("c", "a", TYPE.BUSY, name)
    assert not found.hear("c", busy, 12.1)
    (request,) = said(found.hear("root", reply, 12.2))
    assert request.type is TYPE.OFFER_TRANSFER_REQUEST
    ready = replace(reply, type=TYPE.OFFER_TRANSFER_REPLY)
    done = found.hear("root", ready, 12.3)
    return found, name, MovesBegun(1, (41,)), done


def test_units_change_hands_once_their_target_is_ready() -> None:
    found, name, begun, done = agreed()
    (begin,) = done
    assert isinstance(begin, BeginMoves)
    assert (begin.step.target, begin.step.epochs, begin.step.life) == ("root", (("g", 2),), "a-1")
    assert begin.step.until_s == pytest.approx(NOW_S + 5.0 - 0.3)
    assert begin.numbers["negotiation"] == str(name)
    assert found.answer(begun, 12.4) == []
    assert found.tick(12.5) == []
    move = MoveRecord(41, "g", "a", "root", "preparing", True, NOW_S)
    (change,) = found.observe(situation(moves=(move,)), 12.6)
    assert change == ChangeHands(1, begin.step, (41,))
    clear, told = found.answer(HandsChanged(1), 12.7)
    assert isinstance(clear, SendMessage) and clear.message.type is TYPE.CLEAR
    assert found.state.view.utilisation == 50.0
    assert isinstance(told, TellNegotiation)
    by_peer = {peer.node: (peer.moved, peer.why) for peer in told.record.peers}
    assert by_peer == {"root": (("g",), "fitted"), "c": ((), "it was in another negotiation")}
    there = dict(situation().units) | {"g": running("g", "root", 3)}
    assert found.observe(situation(units=there), 12.8) == [EndMoves((41,))]


def test_a_target_that_is_not_ready_in_time_gets_it_all_the_same() -> None:
    found, _, begun, _ = agreed()
    found.answer(begun, 12.4)
    cold = MoveRecord(41, "g", "a", "root", "preparing", False, NOW_S)
    assert found.observe(situation(moves=(cold,)), 15.0) == []
    (change,) = [one for one in found.tick(16.3) if isinstance(one, ChangeHands)]
    assert change.moves == (41,)


def test_a_move_that_cannot_be_prepared_is_given_up() -> None:
    found, _, begun, _ = agreed()
    found.answer(begun, 12.4)
    broken = MoveRecord(41, "g", "a", "root", "preparing", False, NOW_S, error="no memory")
    done = found.observe(situation(moves=(broken,)), 12.5)
    assert done[0] == EndMoves((41,), "no memory")
    assert found.state.view.utilisation == 75.0


def test_what_was_not_given_when_it_ends_stays() -> None:
    found, _, begun, _ = agreed()
    found.answer(begun, 12.4)
    assert found.give_up("off") == [EndMoves((41,), "off")]
    assert not found.tick(16.3) or not found.give_up("off")


REFUSALS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("b", {"sender": "b"}, "b is no neighbour of a"),
    ("c", {"sender": "root"}, "c speaks for root"),
    ("root", {"receiver": "c"}, "a message to c"),
    (
        "root",
        {"transfers": (Portion(("f",), 5.0),)},
        "opOfferRequest about f, which is not root's",
    ),
    (
        "root",
        {"type": TYPE.OFFER_REPLY, "transfers": (Portion(("k",), 5.0),)},
        "opOfferReply about k, which is not a's",
    ),
    (
        "root",
        {"type": TYPE.DEMAND_TRANSFER_REQUEST, "transfers": (Portion(("x",), 5.0),)},
        "opDemandTransferRequest about x, which is not a's",
    ),
)


@pytest.mark.parametrize(("sender", "message", "why"), REFUSALS)
def test_what_it_refuses(sender: str, message: dict[str, Any], why: str) -> None:
    name = NegotiationId("root", 1, 1)
    whole = NegotiationMessage("root", "a", TYPE.OFFER_REQUEST, name)
    found = negotiator()
    before = found.state
    assert found.hear(sender, replace(whole, **message), 12.0) == [RefuseMessage(sender, why)]
    assert found.state == before


def test_an_answer_to_a_former_life_does_not_count() -> None:
    """Numbers begin anew with every life."""
    former, name, _, _ = agreed()
    assert former.state.incarnation == 7
    found = Negotiator("a", SETTINGS, np.random.default_rng(1), 8, situation(), 0.0)
    (asked, _) = said(found.tick(12.0))
    assert asked.negotiation.number == name.number
    late = NegotiationMessage(
        "root", "a", TYPE.OFFER_REPLY, name, transfers=(Portion(("g",), 25.0),)
    )
    assert [told.type for told in said(found.hear("root", late, 12.1))] == [TYPE.CLEAR]
    busy = NegotiationMessage("c", "a", TYPE.BUSY, asked.negotiation)
    assert not found.hear("c", busy, 12.2)


def test_who_has_just_begun_is_busy_for_as_long_as_it_may_have_promised_room() -> None:
    found = negotiator("root")
    request = NegotiationMessage(
        "a", "root", TYPE.OFFER_REQUEST, NegotiationId("a", 1, 1), transfers=(Portion(("g",), 5.0),)
    )
    assert [told.type for told in said(found.hear("a", request, 4.9))] == [TYPE.BUSY]
    assert [told.type for told in said(found.hear("a", request, 5.1))] == [TYPE.OFFER_REPLY]


def test_neighbours_are_those_of_the_tree_as_it_is_now() -> None:
    found = negotiator()
    nodes = dict(situation().nodes)
    nodes["root"] = node("root", is_alive=False)
    found.observe(situation(nodes=nodes), 1.0)
    assert {told.receiver for told in said(found.tick(12.0))} == {"c"}


def test_it_asks_for_the_step_in_its_own_life() -> None:
    """Another process may have become its node; then the catalog has to refuse."""
    found = negotiator()
    nodes = dict(situation().nodes)
    nodes["a"] = replace(nodes["a"], incarnation="a-2")
    name = said(found.tick(12.0))[0].negotiation
    found.observe(situation(nodes=nodes), 12.1)
    found.hear("c", NegotiationMessage("c", "a", TYPE.BUSY, name), 12.1)
    reply = NegotiationMessage(
        "root", "a", TYPE.OFFER_REPLY, name, transfers=(Portion(("g",), 25.0),)
    )
    found.hear("root", reply, 12.2)
    (begin,) = found.hear("root", replace(reply, type=TYPE.OFFER_TRANSFER_REPLY), 12.3)
    assert isinstance(begin, BeginMoves) and begin.step.life == "a-1"


def test_what_the_catalog_refuses_stays_and_that_is_told() -> None:
    found, name, begun, _ = agreed()
    found.answer(begun, 12.4)
    assert found.state.view.utilisation == 75.0
    warm = MoveRecord(41, "g", "a", "root", "preparing", True, NOW_S)
    found.observe(situation(moves=(warm,)), 12.6)
    ended, clear, told = found.answer(HandsChanged(1, "g is not a's any more"), 12.7)
    assert ended == EndMoves((41,), "g is not a's any more")
    assert isinstance(clear, SendMessage) and clear.message.transfers == ()
    assert isinstance(told, TellNegotiation)
    assert "g is not a's any more" in {peer.why for peer in told.record.peers}
    assert found.state.view.utilisation == 75.0
    assert not found.state.is_in(name)


def test_room_is_kept_for_what_was_promised_until_it_came_or_did_not() -> None:
    found = negotiator("root")
    offer = NegotiationMessage(
        "a", "root", TYPE.OFFER_REQUEST, NegotiationId("a", 1, 1),
        transfers=(Portion(("f", "g"), 50.0),),
    )  # fmt: skip
    found.hear("a", offer, 12.0)
    found.hear("a", replace(offer, type=TYPE.OFFER_TRANSFER_REQUEST), 12.1)
    come = dict(situation().units) | {name: running(name, "root", 4) for name in "fg"}
    unmeasured = MeasuredSizes({"k": 1.0}, {"k": 5.0})
    found.observe(situation("root", units=come, sizes=unmeasured), 12.2)
    assert found.state.view.utilisation == 55.0
    found.hear("a", NegotiationMessage("a", "root", TYPE.CLEAR, offer.negotiation), 12.3)
    found.observe(situation("root", sizes=unmeasured), 12.4)
    assert (found.promised, found.state.view.utilisation) == ({}, 5.0)


def test_among_unequal_nodes_everybody_reckons_in_percent_of_itself() -> None:
    nodes = dict(situation().nodes)
    nodes["root"] = replace(nodes["root"], memory_bytes=4 * nodes["a"].memory_bytes)
    taking = negotiator("root", nodes=nodes)
    offer = NegotiationMessage(
        "a", "root", TYPE.OFFER_REQUEST, NegotiationId("a", 1, 1),
        transfers=(Portion(("f", "g"), 55.0), Portion(("f",), 30.0)),
    )  # fmt: skip
    # The root is at 5, and has room to 59: for 13.75 of itself, which is 55 of a.
    (reply,) = said(taking.hear("a", offer, 12.0))
    assert (reply.type, reply.transfers) == (TYPE.OFFER_REPLY, (Portion(("f", "g"), 55.0),))
    agreed_on = replace(offer, type=TYPE.OFFER_TRANSFER_REQUEST, transfers=reply.transfers)
    taking.hear("a", agreed_on, 12.1)
    assert taking.promised == {"f": 6.875, "g": 6.875}


def test_a_former_parent_is_a_stranger() -> None:
    elsewhere = replace(WIRING, nodes=NodeTree({"root": None, "b": "root", "a": "b", "c": "a"}))
    found = negotiator(wiring=elsewhere)
    message = NegotiationMessage("root", "a", TYPE.DEMAND_REQUEST, NegotiationId("root", 1, 1))
    (refused,) = found.hear("root", message, 12.0)
    assert refused == RefuseMessage("root", "root is no neighbour of a")
