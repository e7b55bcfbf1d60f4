"""Live nodes of a tree negotiate over real servers, with a real catalog; only Spark is missing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.toys import TroubledCatalog
from penstock.control.answers import explain_move, negotiations_answer
from penstock.control.carriers import LoopbackCarrier
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.letters import Letter
from penstock.control.records import MoveRecord, NodeRecord
from penstock.control.system_balance import set_balance
from penstock.control.talking import Talk
from penstock.control.tree_talk import TreeTalk
from penstock.errors import InputError
from penstock.model.measurements import FragmentStatus, NodeSample
from penstock.model.settings import settings_of
from waiting import until

TREE = {"root": None, "a": "root", "b": "root"}
TEXT = """
streams:
  m: {source: {generate: meters, days: 1}, lateness: 2min, on: a}
queries:
  hourly: "SELECT home, window.end AS at, sum(kwh) AS k FROM m GROUP BY home, window(ts, '1h')"
  daily: "SELECT home, window.end AS at, sum(kwh) AS k FROM m GROUP BY home, window(ts, '1d')"
"""
BALANCE = {
    "policy": "hierarchy", "lower": 10, "upper": 60, "period": "100ms", "utilisation": "memory",
    "budget": "1k",
}  # fmt: skip


class Nodes:
    """Three nodes that talk; what their agents would do is done by hand."""

    def __init__(self, catalog: TroubledCatalog, state_bytes: dict[str, int]) -> None:
        self.catalog, self.state_bytes = catalog, state_bytes
        self.began_s = time.time()
        self.talks = {}
        for name in TREE:
            node = next(one for one in catalog.nodes() if one.name == name)
            carrier = LoopbackCarrier("secret", catalog)
            tree = TreeTalk(node, catalog, carrier)
            self.talks[name] = Talk(name, catalog, carrier, tree=tree)
            self.talks[name].join(f"{name}-1")

    def go_on(self) -> None:
        """Everybody measures itself, gets ready for what comes, starts and stops."""
        units = self.catalog.units()
        for move in self.catalog.moves(open_only=True):
            if move.state == "preparing" and not move.is_warm:
                self.catalog.change_move(move.id, is_warm=True)
        for unit in units:
            if unit.previous is not None and unit.released_epoch < unit.epoch - 1:
                self.catalog.release(unit.name, unit.epoch - 1)
            elif not unit.is_up:
                self.catalog.report(unit.name, unit.epoch, "running")
        at_s = time.time()
        for name, talk in self.talks.items():
            mine = {
                unit.name: FragmentStatus(
                    unit.name, cpu_ms=at_s - self.began_s, state_bytes=self.state_bytes[unit.name]
                )
                for unit in units
                if unit.node == name and unit.kind == "fragment"
            }
            talk.measure(NodeSample(at_s, fragments=mine), f"{name}-1")

    def end(self) -> None:
        for talk in self.talks.values():
            talk.end()


@pytest.fixture
def controller(tmp_path: Path, catalog: TroubledCatalog) -> Controller:
    home = Home(tmp_path / "system")
    home.prepare()
    for name, parent in TREE.items():
        catalog.declare(NodeRecord(name, 1, 1 << 30, parent=parent))
        life = f"{name}-1"
        catalog.join(NodeRecord(name, 1, 1 << 30, life, lease_until_s=time.time() + 600))
    made = Controller(home, catalog, began_s=0.0)
    made.submit("tree", "yaml", TEXT, ".")
    for unit in catalog.units():
        catalog.assign(unit, "a")
        catalog.report(unit.name, unit.epoch + 1, "running")
    return made


@pytest.fixture
def nodes(catalog: TroubledCatalog, controller: Controller) -> Iterator[Nodes]:
    made = Nodes(catalog, {"hourly": 300, "daily": 600})
    yield made
    made.end()


def done(catalog: TroubledCatalog) -> list[MoveRecord]:
    return [move for move in catalog.moves() if move.state == "done"]


def test_an_overloaded_node_gives_to_its_parent(
    catalog: TroubledCatalog, nodes: Nodes, controller: Controller
) -> None:
    set_balance(catalog, settings_of(BALANCE))
    until(lambda: done(catalog), 60, lambda: catalog.moves(), check=nodes.go_on)
    first = done(catalog)[0]
    assert (first.unit, first.source, first.target, first.by) == (
        "hourly", "a", "root", "neighbours",
    )  # fmt: skip
    places = {unit.name: (unit.node, unit.epoch) for unit in catalog.units()}
    assert places == {"m": ("a", 1), "daily": ("a", 1), "hourly": ("root", 2)}

    def told() -> object:
        found = negotiations_answer(catalog, 100)
        return [one for one in found if any(part.moved == ["hourly"] for part in one.peers)]

    until(told, 30, check=nodes.go_on)
    explained = explain_move(catalog, first).numbers
    assert explained["utilisation"] == pytest.approx(88, abs=1)
    assert explained["sizes"] == {"hourly": pytest.approx(29.3, abs=0.1)}
    assert explained["negotiated"]["name"] == explained["negotiation"]
    # It comes to rest: what is left is less than it may bear, and nobody moves it to and fro.
    assert len(done(catalog)) == 1


def test_nothing_moves_where_it_is_not_balanced_so(catalog: TroubledCatalog, nodes: Nodes) -> None:
    rounds = iter(range(20))
    until(lambda: next(rounds, None) is None, 30, check=nodes.go_on)
    assert catalog.moves() == ()


def test_a_process_that_is_its_node_no_longer_says_nothing(
    catalog: TroubledCatalog, nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    """It was suspended, and another process has become its node."""
    caplog.set_level("INFO")
    until_s = time.time() + 600
    present = NodeRecord("a", 1, 1 << 30, "a-2", lease_until_s=until_s)
    assert catalog.join(present, former=["a-1"])
    set_balance(catalog, settings_of(BALANCE))
    others = ("node root negotiates", "node b negotiates")
    until(lambda: all(said in caplog.text for said in others), 30, check=nodes.go_on)
    rounds = iter(range(10))
    until(lambda: next(rounds, None) is None, 30, check=nodes.go_on)
    assert "node a negotiates" not in caplog.text
    assert catalog.moves() == ()


def test_a_stranger_is_refused_and_that_is_logged(
    catalog: TroubledCatalog, nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    """A node of the system, with the token, but no neighbour; and one about what it has not."""
    set_balance(catalog, settings_of({**BALANCE, "upper": 100, "lower": 0}))
    record = {
        "sender": "b", "receiver": "a", "type": "opDemandRequest", "negotiation": ["b", 1, 1],
        "size": 10.0,
    }  # fmt: skip
    offer = {**record, "sender": "root", "type": "opOfferRequest", "transfers": [[["daily"], 5.0]]}
    carrier = LoopbackCarrier("secret", catalog)

    def send() -> None:
        nodes.go_on()
        address = catalog.contacts()["a"].address
        for told in (record, offer):
            sender = str(told["sender"])
            letter = Letter(sender=sender, life=f"{sender}-1", to="a", negotiation=told)
            carrier.send(address, letter)

    until(lambda: "opOfferRequest about daily, which is not root's" in caplog.text, 30, check=send)
    assert "node a refused a negotiation of b: b is no neighbour of a" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"lower": 70}, "the thresholds are 70 and 60 percent"),
        ({"upper": 101}, "the thresholds are 10 and 101 percent"),
        ({"period": "0s"}, "nodes would check their load every 0 s"),
        ({"utilisation": "disk"}, "utilisation of balance is disk"),
        ({"every": "5s"}, "balance by hierarchy has no setting every"),
        ({"order": "smallest"}, "order of balance is smallest. There are found, largest"),
        ({"rest": "often"}, "rest of balance is often. Give a number of periods"),
        ({"rest": -1}, "operators rest for -1 periods"),
        ({"relay": "perhaps"}, "relay of balance is perhaps. Give true or false"),
    ],
)
def test_settings_that_make_no_sense(
    catalog: TroubledCatalog, controller: Controller, wrong: dict[str, object], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        set_balance(catalog, settings_of({**BALANCE, **wrong}))
    assert catalog.balance() is None


def test_without_a_tree(catalog: TroubledCatalog, controller: Controller) -> None:
    catalog.hang(dict.fromkeys(TREE))
    with pytest.raises(InputError, match="is for a tree, and the nodes form none"):
        set_balance(catalog, settings_of(BALANCE))


def test_the_larger_node_takes_more(catalog: TroubledCatalog, nodes: Nodes) -> None:
    """Both fragments fit on a root with four times the memory, and on no node like their own."""
    catalog.resize("root", 1, 4 << 30)
    nodes.state_bytes = {"hourly": 600 << 20, "daily": 700 << 20}
    set_balance(catalog, settings_of({**BALANCE, "budget": None, "rest": 0}))
    until(lambda: done(catalog), 60, lambda: catalog.moves(), check=nodes.go_on)
    first = done(catalog)[0]
    assert (first.unit, first.target) == ("daily", "root")
    sizes = explain_move(catalog, first).numbers["sizes"]
    assert sizes == {"daily": pytest.approx(100 * 700 / 1024, abs=0.1)}
