"""Sizes among nodes that are not alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.balance.hierarchy.measures import (
    SIZE_DIGITS,
    Capacity,
    as_heard,
    as_sent,
    scale_between,
)
from penstock.balance.hierarchy.messages import (
    MessageType,
    NegotiationId,
    NegotiationMessage,
    Portion,
)
from penstock.balance.hierarchy.settings import Utilisation

SMALL, LARGE = Capacity(1, 2.0), Capacity(4, 4.0)
NEGOTIATION = NegotiationId("a", 0, 1)


def message(kind: MessageType, *sizes: float) -> NegotiationMessage:
    portions = tuple(Portion((f"o{at}",), size) for at, size in enumerate(sizes))
    return NegotiationMessage("a", "b", kind, NEGOTIATION, size=sum(sizes), transfers=portions)


@pytest.mark.parametrize(
    ("what", "scale"),
    [(Utilisation.CPU, 0.25), (Utilisation.MEMORY, 0.5), (Utilisation.MAX, 0.5)],
)
def test_what_is_a_lot_for_a_small_node_is_little_for_a_large_one(
    what: Utilisation, scale: float
) -> None:
    offer = message(MessageType.OFFER_REQUEST, 20.0, 8.0)
    assert as_sent(offer, SMALL, LARGE, what) == offer
    heard = as_heard(offer, LARGE, SMALL, what)
    assert [portion.size for portion in heard.transfers] == [20.0 * scale, 8.0 * scale]
    assert heard.size == 28.0 * scale


def test_who_asks_says_what_is_missing_in_percent_of_the_owner() -> None:
    demand = message(MessageType.DEMAND_REQUEST, 10.0)
    assert as_sent(demand, SMALL, LARGE, Utilisation.CPU).size == 2.5
    assert as_heard(demand, LARGE, SMALL, Utilisation.CPU) == demand


_capacities = st.builds(Capacity, st.integers(1, 64), st.integers(1, 1 << 10))


@given(
    st.lists(st.integers(1, 10**6), max_size=5),
    _capacities,
    _capacities,
    st.sampled_from(Utilisation),
)
def test_an_owner_gets_back_the_very_sizes_that_it_said(
    units: list[int], owner: Capacity, taker: Capacity, what: Utilisation
) -> None:
    sizes = [round(unit / 10**SIZE_DIGITS, SIZE_DIGITS) for unit in units]
    heard = as_heard(message(MessageType.OFFER_REQUEST, *sizes), taker, owner, what)
    reply = message(MessageType.OFFER_REPLY, *(portion.size for portion in heard.transfers))
    back = as_sent(reply, taker, owner, what)
    assert [portion.size for portion in back.transfers] == sizes


@given(_capacities, _capacities, st.floats(0, 100), st.floats(0, 100))
def test_where_the_larger_counts_nothing_takes_more_than_was_said(
    owner: Capacity, taker: Capacity, cpu: float, memory: float
) -> None:
    said = max(cpu, memory) * scale_between(owner, taker, Utilisation.MAX)
    there = max(cpu * owner.cpu / taker.cpu, memory * owner.memory / taker.memory)
    assert there <= said * (1 + 1e-12)
