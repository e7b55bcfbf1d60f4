"""Rhythm: rounds are as long as what was promised about the results behind a fragment allows."""

from __future__ import annotations

import pytest

from model.samples import filtered, input_of, stream_of
from penstock.model.network import Network, Query
from penstock.model.sources import MemorySink
from penstock.place.fuse import fuse
from penstock.place.rhythm import round_us

SHORTEST_US = 200_000
READINGS = stream_of("readings")


def rounds_us(*limits_us: int | None) -> int:
    """The round of the one fragment behind queries with these limits."""
    only = filtered("only", input_of(READINGS))
    queries = [Query(f"q{at}", "only", MemorySink(), limit) for at, limit in enumerate(limits_us)]
    network = Network((READINGS,), (only,), tuple(queries))
    (fragment,) = fuse(network)
    return round_us(network, fragment, SHORTEST_US)


def test_without_a_limit_rounds_are_short() -> None:
    assert rounds_us(None) == SHORTEST_US


def test_a_quarter_of_the_limit() -> None:
    assert rounds_us(8_000_000) == 2_000_000


def test_the_tightest_limit_counts() -> None:
    assert rounds_us(8_000_000, 4_000_000) == 1_000_000


def test_one_query_without_a_limit_keeps_rounds_short() -> None:
    assert rounds_us(8_000_000, None) == SHORTEST_US


@pytest.mark.parametrize("limit_us", [1, 100_000, 799_999])
def test_never_shorter_than_allowed(limit_us: int) -> None:
    assert rounds_us(limit_us) == SHORTEST_US
