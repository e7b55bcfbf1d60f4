"""Nodes hear of each other's load: through queues, and through real servers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from control.toys import TroubledCatalog, raising
from penstock.control.answers import nodes_answer
from penstock.control.carriers import Carrier, InlineCarrier, LoopbackCarrier
from penstock.control.load_gossip import LoadGossip
from penstock.control.records import NodeRecord
from penstock.control.talking import Talk
from penstock.errors import UnreachableError
from penstock.model.measurements import NodeSample
from waiting import until

TOKEN = "secret"


@pytest.fixture(params=["inline", "loopback"])
def carrier(request: pytest.FixtureRequest, catalog: TroubledCatalog) -> Carrier:
    return InlineCarrier() if request.param == "inline" else LoopbackCarrier(TOKEN, catalog)


@pytest.fixture
def talks(catalog: TroubledCatalog, carrier: Carrier) -> dict[str, Talk]:
    until_s = catalog.now_s() + 60.0
    made = {}
    for name in "abc":
        catalog.join(NodeRecord(name, 1, 1, f"{name}-1", lease_until_s=until_s))
        made[name] = Talk(name, catalog, carrier, LoadGossip(every_s=0.05))
    return made


def heard(catalog: TroubledCatalog) -> dict[str, set[str]]:
    return {node.name: set(node.heard) for node in nodes_answer(catalog)}


def go_on(talks: dict[str, Talk]) -> Callable[[], None]:
    return lambda: (
        [
            talk.measure(NodeSample(1.0, utilisation=0.5, memory_bytes=1 << 20), f"{name}-1")
            for name, talk in talks.items()
        ]
        and None
    )


def test_everybody_hears_of_everybody(catalog: TroubledCatalog, talks: dict[str, Talk]) -> None:
    assert heard(catalog) == {"a": set(), "b": set(), "c": set()}
    for name, talk in talks.items():
        talk.join(f"{name}-1")
    all_heard = {"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}}
    until(lambda: heard(catalog) == all_heard, check=go_on(talks), what=lambda: heard(catalog))
    ages_s = [age_s for node in nodes_answer(catalog) for age_s in node.heard.values()]
    assert max(ages_s) < 30.0
    for talk in talks.values():
        talk.end()


def test_one_that_is_silent_is_heard_of_no_more_and_harms_nobody(
    catalog: TroubledCatalog, talks: dict[str, Talk], caplog: pytest.LogCaptureFixture
) -> None:
    """It is gone without a word: it is still told, until its lease has run out."""
    for name in "ab":
        talks[name].join(f"{name}-1")
    catalog.publish("c", "c-1", "127.0.0.1:1")
    del talks["c"]
    until(lambda: heard(catalog)["a"] == {"b"} == {"b"} - heard(catalog)["b"], check=go_on(talks))
    for talk in talks.values():
        talk.end()


def test_without_messages_a_node_works_all_the_same(
    catalog: TroubledCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    class Closed(InlineCarrier):
        def open(self, node: str, deliver: object) -> str:
            raise OSError("no port is free")

    talk = Talk("a", catalog, Closed())
    talk.join("a-1")
    talk.measure(NodeSample(1.0, utilisation=0.5), "a-1")
    talk.end()
    assert "node a takes no messages: no port is free" in caplog.text


def test_what_cannot_be_sent_is_said_once(
    catalog: TroubledCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(InlineCarrier):
        def send(self, address: str, letter: object) -> None:
            sent.append(address)
            raising(UnreachableError("node b does not answer"))()

    sent: list[str] = []
    for name in "ab":
        until_s = catalog.now_s() + 60.0
        catalog.join(NodeRecord(name, 1, 1, f"{name}-1", lease_until_s=until_s))
        catalog.publish(name, f"{name}-1", f"inline:{name}")
    talk = Talk("a", catalog, Broken(), LoadGossip(every_s=0.01))
    talk.join("a-1")
    until(
        lambda: len(sent) > 3, check=lambda: talk.measure(NodeSample(1.0, utilisation=0.5), "a-1")
    )
    talk.end()
    assert caplog.text.count("node b does not answer") == 1
