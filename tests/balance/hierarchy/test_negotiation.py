"""Single steps of negotiations, message by message."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from balance.hierarchy.mutants import ForgetsItsPromises
from penstock.balance.hierarchy.instructions import ChangeOwner, Prepare, Refuse
from penstock.balance.hierarchy.messages import (
    MessageType,
    NegotiationId,
    NegotiationMessage,
    Portion,
    Urgency,
)
from penstock.balance.hierarchy.negotiation import Hierarchy
from penstock.balance.hierarchy.ownership import Ownership
from penstock.balance.hierarchy.settings import Accept, HierarchySettings, TransferOrder
from penstock.balance.hierarchy.transfers import PlacedOperators
from penstock.errors import InputError
from penstock.lang.abstract import parse_tree
from penstock.sim.links import Links
from penstock.sim.tree_world import TreeWorld, Watcher

FIGURE_12 = parse_tree(
    """
nodes: {n1: {}, n2: {parent: n1}, n3: {parent: n2}}
inputs: {m: {node: n3}}
operators:
  A: {inputs: [m], size: 10, node: n2}
  B: {inputs: [m], size: 55, node: n2}
  p: {inputs: [B], size: 59, node: n1}
  k: {inputs: [m], size: 40, node: n3}
""",
    "figure-12.yaml",
)


class Listener(Watcher):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[NegotiationMessage] = []

    def on_message(self, now_s: float, message: NegotiationMessage) -> None:
        self.said.append(message)


def _conversation(settings: HierarchySettings, network: Any = FIGURE_12) -> list[str]:
    """The negotiations of the first period that node n2 began, as (from, to, type, …)."""
    listener = Listener()
    world = TreeWorld(network, Hierarchy(settings), 1, watcher=listener)
    world.advance(settings.period_s)
    return [
        f"{one.sender}>{one.receiver} {one.type} {one.urgent} "
        + " ".join(f"{'+'.join(portion.operators)}:{portion.size:g}" for portion in one.transfers)
        for one in listener.said
        if one.negotiation.initiator == "n2"
    ]


def test_figure_12() -> None:
    assert [line.strip() for line in _conversation(HierarchySettings())] == [
        "n2>n1 opOfferRequest Unset A:10",
        "n2>n3 opOfferRequest Unset A:10",
        "n1>n2 opOfferReply Normal",
        "n3>n2 opOfferReply High A:10",
        "n2>n3 opOfferTransferRequest Unset A:10",
        "n2>n1 Clear Unset",
        "n3>n2 opOfferTransferReply Unset A:10",
        "n2>n3 Clear Unset A:10",
    ]


def test_accepting_only_up_to_the_target() -> None:
    said = _conversation(HierarchySettings(accept=Accept.TARGET))
    assert "n3>n2 opOfferReply High A:10" in said  # 40 + 10 is the target
    heavier = replace(
        FIGURE_12,
        operators=tuple(
            replace(operator, size=41.0) if operator.name == "k" else operator
            for operator in FIGURE_12.operators
        ),
    )
    said = _conversation(HierarchySettings(accept=Accept.TARGET), heavier)
    assert "n3>n2 opOfferReply Normal " in said


def test_an_underloaded_node_is_given_what_its_neighbours_can_spare() -> None:
    network = parse_tree(
        """
nodes: {n1: {}, n2: {parent: n1}, n3: {parent: n2}}
inputs: {m: {node: n3}, own: {node: n1}}
operators:
  a: {inputs: [m], size: 4, node: n1}
  b: {inputs: [m], size: 5, node: n1}
  c: {inputs: [own], size: 47, node: n1}
  x: {inputs: [m], size: 20, node: n2}
  y: {inputs: [m], size: 45, node: n3}
""",
        "demand.yaml",
    )
    said = [line.strip() for line in _conversation(HierarchySettings(), network)]
    # n1 is at 56 and can spare 6: it shows both, and gives the first alone.
    assert said == [
        "n2>n1 opDemandRequest Unset",
        "n2>n3 opDemandRequest Unset",
        "n1>n2 opDemandReply Normal a:4 b:5",
        "n3>n2 opDemandReply Unset",
        "n2>n1 opDemandTransferRequest Unset a:4 b:5",
        "n2>n3 Clear Unset",
        "n1>n2 opDemandTransferReply Unset a:4",
    ]


def test_transfers_are_listed_as_found_or_the_largest_first() -> None:
    portions = [Portion(("a",), 1), Portion(("b",), 3), Portion(("c",), 2)]
    assert [one.size for one in HierarchySettings().sort(portions)] == [1, 3, 2]
    largest = HierarchySettings(order=TransferOrder.LARGEST)
    assert [one.size for one in largest.sort(portions)] == [3, 2, 1]


NAME = NegotiationId("n2", 0, 0)


def _node(protocol: Hierarchy, node: str) -> tuple[Any, np.random.Generator]:
    world = TreeWorld(FIGURE_12, protocol, 0)
    return world.state(node), np.random.default_rng(0)


def test_a_busy_node_says_so_at_once() -> None:
    protocol = Hierarchy()
    state, rng = _node(protocol, "n3")
    request = NegotiationMessage(
        "n2", "n3", MessageType.OFFER_REQUEST, NAME, transfers=(Portion(("A",), 10),)
    )
    joined = protocol.handle(state, request, 1.0, rng)
    assert joined.messages[0].urgent is Urgency.HIGH
    other = replace(request, negotiation=NegotiationId("n2", 0, 1))
    (answer,) = protocol.handle(joined.state, other, 1.1, rng).messages
    assert (answer.type, answer.receiver) == (MessageType.BUSY, "n2")
    # The same request again is not another one.
    assert protocol.handle(joined.state, request, 1.1, rng).messages == ()
    # After its deadline the node is free, and prepared for nothing.
    late = protocol.handle(joined.state, other, 1.0 + protocol.settings.hold_s, rng)
    assert late.messages[0].type is MessageType.OFFER_REPLY


def test_what_was_promised_is_looked_at_again() -> None:
    protocol = Hierarchy()
    state, rng = _node(protocol, "n3")
    portion = Portion(("A",), 10)
    request = NegotiationMessage("n2", "n3", MessageType.OFFER_REQUEST, NAME, transfers=(portion,))
    joined = protocol.handle(state, request, 1.0, rng).state
    transfer = replace(request, type=MessageType.OFFER_TRANSFER_REQUEST)
    ready = protocol.handle(joined, transfer, 1.1, rng)
    assert ready.instructions == (Prepare(NAME, "n2", ("A",)),)
    larger = replace(transfer, transfers=(Portion(("A",), 11),))
    assert protocol.handle(joined, larger, 1.1, rng).messages[0].transfers == ()
    fuller = replace(joined, view=replace(joined.view, utilisation=49.5))
    assert protocol.handle(fuller, transfer, 1.1, rng).messages[0].transfers == ()


@pytest.mark.parametrize(
    ("protocol", "answer"),
    [(Hierarchy(), MessageType.BUSY), (ForgetsItsPromises(), MessageType.OFFER_REPLY)],
)
def test_a_node_that_began_again_is_busy_until_its_promises_have_ended(
    protocol: Hierarchy, answer: MessageType
) -> None:
    state, rng = _node(protocol, "n3")
    begun = protocol.begin("n3", ("n2",), state.view, 10.0, rng, incarnation=1)
    request = NegotiationMessage("n2", "n3", MessageType.OFFER_REQUEST, NAME)
    hold_s = protocol.settings.hold_s
    assert protocol.handle(begun, request, 9.99 + hold_s, rng).messages[0].type is answer
    later = protocol.handle(begun, request, 10.0 + hold_s, rng).messages[0]
    assert later.type is MessageType.OFFER_REPLY


def test_strangers_are_refused() -> None:
    protocol = Hierarchy()
    state, rng = _node(protocol, "n3")
    message = NegotiationMessage("n1", "n3", MessageType.OFFER_REQUEST, NAME)
    found = protocol.handle(state, message, 1.0, rng)
    assert found.instructions == (Refuse(message, "n1 is no neighbour of n3"),)
    assert found.state == state and found.messages == ()


def test_ownership_changes_by_compare_and_set() -> None:
    record = Ownership(PlacedOperators(FIGURE_12))
    step = ChangeOwner(NAME, "n2", "n3", (Portion(("A",), 10),), (("A", 0),), 9.0)
    assert record.change(step) and record.placed.node_of("A") == "n3" and record.epoch("A") == 1
    assert not record.change(step), "the same step again"
    assert not record.change(replace(step, target="n1")), "the same epoch, another target"
    back = ChangeOwner(NAME, "n3", "n2", step.portions, (("A", 0),), 9.0)
    assert not record.change(back) and record.change(replace(back, epochs=(("A", 1),)))
    apart = ChangeOwner(NAME, "n2", "n1", (), (("B", 0),), 9.0)
    assert record.change(apart), "its reader is there"
    alone = ChangeOwner(NAME, "n1", "n2", (), (("p", 0),), 9.0)
    assert not record.change(alone), "it would be where its input does not pass"
    assert record.placed.node_of("p") == "n1" and record.epoch("p") == 0


def test_messages_travel_as_json() -> None:
    message = NegotiationMessage(
        "n3", "n2", MessageType.OFFER_REPLY, NAME, Urgency.HIGH, 10.0, (Portion(("A", "B"), 10.0),)
    )
    assert NegotiationMessage.of_record(json.loads(json.dumps(message.as_record()))) == message


@pytest.mark.parametrize(
    "change",
    [
        {"type": "opSteal"},
        {"sender": ""},
        {"sender": 7},
        {"negotiation": ["n2", 0]},
        {"negotiation": ["n2", -1, 0]},
        {"size": float("nan")},
        {"size": True},
        {"transfers": [[["A"], -1]]},
        {"transfers": [["A"]]},
        {"transfers": [[["A"], 1]] * 10_001},
        {"urgent": "Immediately"},
    ],
)
def test_malformed_messages_are_refused(change: dict[str, Any]) -> None:
    record = NegotiationMessage("n3", "n2", MessageType.CLEAR, NAME).as_record()
    with pytest.raises(InputError, match="this is no message of a negotiation"):
        NegotiationMessage.of_record(record | change)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"lower": 60, "upper": 60}, "the thresholds are 60 and 60 percent. lower has to be"),
        ({"upper": 130}, "the thresholds are 40 and 130 percent."),
        ({"lower": float("nan")}, "the thresholds are nan and 60 percent."),
        ({"period_s": 0}, "nodes would check their load every 0 s. Give a period above zero."),
        ({"answer_s": 3}, "answers are waited for 3 s in a negotiation of at most 3 s."),
        ({"rest_periods": -1}, "operators rest for -1 periods"),
    ],
)
def test_settings_that_make_no_sense_are_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as raised:
        HierarchySettings(**values)
    assert text in str(raised.value)


def test_links_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="no network is like this"):
        Links(0.2, 0.1)


def test_a_node_that_had_to_refuse_makes_room_by_an_offer_of_its_own() -> None:
    network = parse_tree(
        """
nodes: {n1: {}, n2: {parent: n1}, n3: {parent: n2}}
inputs: {m: {node: n3}}
operators:
  big: {inputs: [m], size: 70, node: n1}
  part: {inputs: [m], size: 12, node: n1}
  x: {inputs: [m], size: 6, node: n2}
  y: {inputs: [m], size: 50, node: n2}
  z: {inputs: [m], size: 42, node: n3}
""",
        "relay.yaml",
    )
    plain, relay = (
        TreeWorld(network, Hierarchy(HierarchySettings(relay=on)), 1) for on in (False, True)
    )
    for world in (plain, relay):
        world.advance(30)
    # n2 is at 56: no room for part, unless x goes on to n3, which takes it up to its target.
    assert plain.utilisations() == {"n1": 82.0, "n2": 56.0, "n3": 42.0}
    assert relay.utilisations() == {"n1": 82.0, "n2": 50.0, "n3": 48.0}
