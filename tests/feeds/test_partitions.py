"""Partitions take turns, and the one furthest behind tells the time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.feeds.partitions import Span, block_of, stream_time_us, take_turns

sizes = st.lists(st.integers(0, 40), max_size=5)
blocks = st.integers(1, 9)


def spans(lengths: list[int]) -> list[Span]:
    return [Span(at, 100 * at, 100 * at + length) for at, length in enumerate(lengths)]


def plain_order(lengths: list[int], block: int) -> list[tuple[int, int]]:
    """All records, by partition and offset: one block of each partition after the other."""
    found = []
    for turn in range(0, 41, block):
        for at, length in enumerate(lengths):
            found += [(at, 100 * at + k) for k in range(turn, min(turn + block, length))]
    return found


def records(turns: tuple[Span, ...]) -> list[tuple[int, int]]:
    return [(turn.partition, k) for turn in turns for k in range(turn.start, turn.stop)]


@given(lengths=sizes, block=blocks, most=st.lists(st.integers(1, 60), min_size=1))
def test_the_order_is_the_same_however_it_is_cut(
    lengths: list[int], block: int, most: list[int]
) -> None:
    left = {span.partition: span for span in reversed(spans(lengths))}
    found: list[tuple[int, int]] = []
    for at in range(1_000):
        turns = take_turns(left.values(), block, most[at % len(most)])
        if not turns:
            break
        found += records(turns)
        for turn in turns:
            left[turn.partition] = Span(turn.partition, turn.stop, left[turn.partition].stop)
    assert found == plain_order(lengths, block)


@given(lengths=sizes, block=blocks, most=st.integers(1, 200))
def test_no_more_than_asked_for_but_a_round_at_least(
    lengths: list[int], block: int, most: int
) -> None:
    turns = take_turns(spans(lengths), block, most)
    first_round = sum(min(block, length) for length in lengths)
    assert sum(turn.size for turn in turns) <= max(most, first_round)
    assert {turn.partition for turn in turns} == {k for k, length in enumerate(lengths) if length}


@given(partitions=st.integers(0, 5_000), most=st.integers(1, 10**6))
def test_a_round_of_all_partitions_fits(partitions: int, most: int) -> None:
    block = block_of(partitions, most)
    assert 1 <= block <= 1_000
    assert block == 1 or partitions * block <= most


@given(
    reached_us=st.dictionaries(st.integers(0, 4), st.integers(0, 99)),
    awaited=st.sets(st.integers(0, 4)),
    before_us=st.none() | st.integers(0, 99),
)
def test_time_is_that_of_the_one_furthest_behind_and_never_goes_back(
    reached_us: dict[int, int], awaited: set[int], before_us: int | None
) -> None:
    found = stream_time_us(reached_us, awaited, before_us)
    if awaited - set(reached_us):
        assert found == before_us
        return
    counted = [reached_us[one] for one in awaited]
    told = min(counted) if counted else max(reached_us.values(), default=None)
    assert found == max((us for us in (told, before_us) if us is not None), default=None)
