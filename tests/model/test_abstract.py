"""Abstract networks check themselves when built."""

import pytest

from penstock.errors import InputError
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator

A = AbstractInput("A")
OP = AbstractOperator("o", ("A",), 1.0)
NODE = AbstractNode("n")


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: AbstractInput("A", -1.0), "input A has the rate_per_s -1. Give zero or more."),
        (lambda: AbstractInput("A", 1.0, 2.0), "a typical rate of 1 below its lower bound of 2"),
        (lambda: AbstractOperator("o", (), 1.0), "operator o reads nothing. Name its inputs"),
        (lambda: AbstractOperator("o", ("A",), float("nan")), "operator o has the cost nan"),
        (lambda: AbstractOperator("o", ("A",), 1.0, window_s=1.0), "has a window and is no join"),
        (
            lambda: AbstractOperator("j", ("A",), 1.0, kind="join", window_s=1.0),
            "join j reads 1 streams. Give it two.",
        ),
        (lambda: AbstractNode("n", 0.0), "node n has the cpu 0. Give more than zero."),
        (lambda: AbstractNode("n", 1.0, 0.0), "node n has the bandwidth 0. Give more than"),
        (lambda: AbstractNetwork((A,), (OP,), ()), "an abstract network without nodes."),
        (lambda: AbstractNetwork((A,), (OP, OP), (NODE,)), "two inputs or operators are called o."),
        (lambda: AbstractNetwork((A,), (OP,), (NODE, NODE)), "two nodes are called n."),
        (lambda: AbstractNetwork((A,), (OP,), (NODE,), 0.0), "the network has the bandwidth 0."),
    ],
)
def test_what_is_refused(build: object, text: str) -> None:
    with pytest.raises(InputError) as raised:
        build()  # type: ignore[operator]
    assert text in str(raised.value)


def test_a_unit_cannot_be_pinned_twice() -> None:
    operators = [AbstractOperator(f"o{at}", ("A",), 1.0, unit="u", node=f"n{at}") for at in (1, 2)]
    with pytest.raises(InputError) as raised:
        AbstractNetwork((A,), tuple(operators), (AbstractNode("n1"), AbstractNode("n2")))
    assert str(raised.value) == (
        "operators of u are put on n1 and on n2. They have to run on the same node."
    )


def test_readers_twice_if_they_read_twice() -> None:
    network = AbstractNetwork((A,), (AbstractOperator("o", ("A", "A"), 1.0),), (NODE,))
    assert [reader.name for reader in network.readers["A"]] == ["o", "o"]
