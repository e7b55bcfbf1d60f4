"""A simulated deployment whose nodes negotiate: what moves, what that costs, what is told of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.balance.hierarchy.instructions import ChangeOwner
from penstock.balance.hierarchy.messages import NegotiationId, Portion
from penstock.balance.hierarchy.settings import HierarchySettings, Utilisation
from penstock.balance.hierarchy.transfers import DownRule
from penstock.load.batches import BatchWork
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.model.node_tree import NodeTree
from penstock.sim.micro_batches import MicroBatches
from penstock.sim.negotiating import NegotiatedSystem, fixed_operators, wiring_of
from penstock.sim.row_feeds import EvenRows

SETTINGS = HierarchySettings(utilisation=Utilisation.CPU, rule=DownRule.WIDE, period_s=2.0)
NODES = ("root", "a", "b")


def network(cores: dict[str, float] | None = None) -> AbstractNetwork:
    """Four fragments that read a stream from below a, each a fifth of a node."""
    operators = tuple(
        AbstractOperator(f"f{at}", ("m",), cost_s=0.0019, selectivity=0.5) for at in range(4)
    )
    nodes = tuple(AbstractNode(name, (cores or {}).get(name, 1.0)) for name in NODES)
    return AbstractNetwork((AbstractInput("m"),), operators, nodes)


def system(
    made: AbstractNetwork,
    start: tuple[int, ...] = (0, 0, 0, 0),
    is_negotiating: bool = True,
) -> NegotiatedSystem:
    work = {operator.name: BatchWork(0.5) for operator in made.operators}
    tree = NodeTree({"root": None, "a": "root", "b": "root"})
    batches = MicroBatches(made, EvenRows([100.0]), start, seed=1, work=work)
    wiring = wiring_of(made, tree, {"m": "a"})
    return NegotiatedSystem(batches, wiring, SETTINGS, 1, is_negotiating)


def places(found: NegotiatedSystem) -> list[str]:
    return [NODES[at] for at in found.simulation.assignment]


def test_an_overloaded_root_gives_to_the_child_that_feeds_it() -> None:
    found = system(network())
    found.advance(40.0)
    assert sorted(places(found)) == ["a", "root", "root", "root"]
    (transfer,) = found.transfers
    assert (transfer.source, transfer.target) == ("root", "a")
    assert transfer.size == pytest.approx(19, abs=2)
    assert found.moved_load == pytest.approx(0.19, abs=0.02)
    figures = found.figures()
    assert (figures.steps, figures.moved) == (1, 1)
    assert figures.overloaded[5] == 1 and figures.overloaded[-1] == 0
    assert figures.mean[-1] == pytest.approx(76 / 3, abs=1)
    # Rows that came in meanwhile are not lost.
    assert found.simulation.waiting < 400


def test_without_negotiations_it_stays_overloaded() -> None:
    found = system(network(), is_negotiating=False)
    found.advance(40.0)
    figures = found.figures()
    assert places(found) == ["root"] * 4 and (figures.messages, figures.moved) == (0, 0)
    assert figures.overloaded[5:].tolist() == [1] * 35
    assert figures.excess[-1] == pytest.approx(16, abs=2)


def test_a_larger_node_bears_more() -> None:
    made = network({"root": 4.0})
    found = system(made)
    found.advance(40.0)
    assert places(found) == ["root"] * 4
    assert found.figures().mean[-1] == pytest.approx(19 / 3, abs=1)
    found = system(network({"a": 0.3}))
    found.advance(40.0)
    # A fifth of the root is two thirds of a, which has no room for it.
    assert places(found) == ["root"] * 4


def test_what_is_pinned_or_tied_stays() -> None:
    first, second, third, last = network().operators
    made = replace(
        network(),
        operators=(
            replace(first, node="root"),
            replace(second, sticky=True),
            replace(third, unit="u"),
            replace(last, unit="u"),
        ),
    )
    assert fixed_operators(made) == {"f0", "f1", "f2", "f3"}
    found = system(made)
    found.advance(40.0)
    assert places(found) == ["root"] * 4 and found.figures().messages > 0


def test_the_same_seed_gives_the_same_run() -> None:
    first, again = (system(network()) for _ in range(2))
    for found in (first, again):
        found.advance(30.0)
    assert first.transfers == again.transfers
    assert first.figures().mean.tolist() == again.figures().mean.tolist()


def test_a_fragment_that_is_moved_again_on_its_way_arrives_once() -> None:
    found = system(network(), is_negotiating=False)
    found.advance(1.0)
    portion = Portion(("f0",), 20.0)
    step = ChangeOwner(NegotiationId("root", 0, 1), "root", "a", (portion,), (("f0", 0),), 9.0)
    found.hand_over(1.0, step)
    found.hand_over(1.05, replace(step, source="a", target="b"))
    found.advance(3.0)
    assert places(found)[0] == "b" and found.simulation.moves == 1
