"""First placements in a tree of nodes: every unit gets all its inputs, whatever is wished."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.model.node_tree import NodeTree
from penstock.place.tree_placing import TreeWiring, place_in_tree


@st.composite
def wirings(draw: st.DrawFn) -> TreeWiring:
    count = draw(st.integers(1, 7))
    parents: dict[str, str | None] = {"n0": None}
    for at in range(1, count):
        parents[f"n{at}"] = f"n{draw(st.integers(0, at - 1))}"
    nodes = sorted(parents)
    attached = {f"m{at}": draw(st.sampled_from(nodes)) for at in range(draw(st.integers(1, 3)))}
    reads: dict[str, dict[str, str]] = {name: {} for name in attached}
    for at in range(draw(st.integers(0, 6))):
        read = draw(st.lists(st.sampled_from(sorted(reads)), min_size=1, max_size=2, unique=True))
        reads[f"f{at}"] = {name: name for name in read}
    return TreeWiring(NodeTree(parents), reads, attached)


def is_fed(wiring: TreeWiring, places: dict[str, str]) -> bool:
    """The definition: every input of every unit begins on its node or below it."""
    return all(
        wiring.nodes.passes(places[maker], places[unit])
        for unit, read in wiring.reads.items()
        for maker in read.values()
    )


@given(wirings(), st.data())
def test_every_unit_gets_its_inputs_whatever_is_wished(
    wiring: TreeWiring, data: st.DataObject
) -> None:
    units = [name for name in wiring.reads if name not in wiring.attached]
    nodes = sorted(wiring.nodes.parents)
    wished = {unit: data.draw(st.sampled_from(nodes)) for unit in units}
    placed = place_in_tree(wiring, units, {}, {}, wished)
    assert list(placed) == units
    assert is_fed(wiring, {**wiring.attached, **placed})


@given(wirings(), st.data())
def test_what_was_placed_can_be_pinned_there(wiring: TreeWiring, data: st.DataObject) -> None:
    """A plan that is written down holds, in whole or in part; the rest arranges itself."""
    units = [name for name in wiring.reads if name not in wiring.attached]
    nodes = sorted(wiring.nodes.parents)
    first = place_in_tree(
        wiring, units, {}, {}, {unit: data.draw(st.sampled_from(nodes)) for unit in units}
    )
    pinned = {unit: node for unit, node in first.items() if data.draw(st.booleans())}
    wished = {unit: data.draw(st.sampled_from(nodes)) for unit in units}
    again = place_in_tree(wiring, units, {}, pinned, wished)
    assert again.items() >= pinned.items()
    assert is_fed(wiring, {**wiring.attached, **again})


def test_a_pin_that_does_not_hold_is_refused_by_the_stream() -> None:
    wiring = TreeWiring(
        NodeTree({"root": None, "a": "root", "b": "root"}),
        {"m1": {}, "m2": {}, "f": {"m1": "m1"}, "g": {"f": "f", "m2": "m2"}},
        {"m1": "a", "m2": "b"},
    )
    for pinned, text in (
        ({"f": "b"}, "f cannot run on b: m1 from a does not pass there. Streams flow to the "
         "parent only; it can run on a, root."),
        ({"g": "a"}, "g cannot run on a: m2 from b does not pass there. Streams flow to the "
         "parent only; it can run on root."),
        ({"f": "root", "g": "b"}, "g cannot run on b: f from root does not pass there. Streams "
         "flow to the parent only; it can run on root."),
    ):  # fmt: skip
        with pytest.raises(InputError) as refused:
            place_in_tree(wiring, ["f", "g"], {}, pinned, {})
        assert str(refused.value) == text
