"""NEXMark: the proportions, identifiers and laws of the public benchmark."""

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.feeds.nexmark import (
    CITIES,
    FIRST_NAMES,
    HOT_CHANNELS,
    LAST_NAMES,
    STATES,
    Kind,
    Nexmark,
)

EVENTS = 400_000
KINDS: tuple[Kind, ...] = ("persons", "auctions", "bids")


def stream(kind: Kind) -> pa.Table:
    feed = Nexmark(kind=kind, events=EVENTS, seed=5)
    return feed.read(0, feed.size or 0)


PERSONS, AUCTIONS, BIDS = (stream(kind) for kind in KINDS)


def column(table: pa.Table, name: str) -> np.ndarray:
    return table[name].to_numpy()


@settings(database=None, deadline=None)
@given(st.integers(1, 1_000))
def test_proportions_of_any_number_of_events(events: int) -> None:
    expected = Counter(
        "persons" if event % 50 < 1 else "auctions" if event % 50 < 4 else "bids"
        for event in range(events)
    )
    found = {kind: Nexmark(kind=kind, events=events).size for kind in KINDS}
    assert found == {kind: expected[kind] for kind in KINDS}


def test_events_of_all_kinds_interleave_at_the_rate() -> None:
    times_us = np.sort(
        np.concatenate([t["ts"].cast(pa.int64()).to_numpy() for t in (PERSONS, AUCTIONS, BIDS)])
    )
    assert (np.diff(times_us) == 100).all()
    assert len(times_us) == EVENTS


def test_rates_that_do_not_divide_a_second() -> None:
    feed = Nexmark(kind="bids", events=1_000, events_per_s=7, speedup=1)
    times_us = feed.read(0, 5)["ts"].cast(pa.int64()).to_numpy()
    assert (times_us - times_us[0]).tolist() == [0, 142_857, 285_714, 428_572, 571_429]
    assert [feed.due(second) for second in (0.5, 0.571427, 4 / 7, 1.0)] == [0, 0, 1, 4]


def test_identifiers_count_up_from_1000() -> None:
    assert column(PERSONS, "id").tolist() == list(range(1_000, 1_000 + PERSONS.num_rows))
    assert column(AUCTIONS, "id").tolist() == list(range(1_000, 1_000 + AUCTIONS.num_rows))


def test_persons() -> None:
    assert set(PERSONS["city"].to_pylist()) == set(CITIES.to_pylist())
    assert set(PERSONS["state"].to_pylist()) == set(STATES.to_pylist())
    names = {f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES}
    assert set(PERSONS["name"].to_pylist()) == names
    assert all(re.fullmatch(r"[a-z]{3,6}@[a-z]{3,4}\.com", e) for e in PERSONS["email"].to_pylist())
    cards = PERSONS["credit_card"].to_pylist()
    assert all(re.fullmatch(r"\d{4}( \d{4}){3}", card) for card in cards)
    assert len(set(cards)) == len(cards)


def test_auctions() -> None:
    lengths = [pc.utf8_length(AUCTIONS[name]).to_numpy() for name in ("item_name", "description")]
    assert [(of.min(), of.max()) for of in lengths] == [(3, 19), (3, 99)]
    assert set(column(AUCTIONS, "category").tolist()) == {10, 11, 12, 13, 14}
    assert (column(AUCTIONS, "reserve") >= column(AUCTIONS, "initial_bid") + 100).all()


def test_auctions_last_until_100_more_are_open_on_average() -> None:
    lasted_us = pc.subtract(AUCTIONS["expires"], AUCTIONS["ts"]).cast(pa.int64()).to_numpy()
    assert lasted_us.min() >= 1_000
    assert lasted_us.mean() == pytest.approx(1_666 * 100, rel=0.02)


def test_prices_are_even_on_a_logarithmic_scale() -> None:
    for price in (column(BIDS, "price"), column(AUCTIONS, "initial_bid")):
        assert price.min() >= 100 and price.max() <= 100_000_000
        decades = np.bincount(np.clip(np.floor(np.log10(price)), 2, 7).astype(int))[2:]
        assert decades / len(price) == pytest.approx(1 / 6, rel=0.05)


def test_half_of_the_bids_go_to_the_hot_auction() -> None:
    last = np.arange(BIDS.num_rows) // 46 * 3 + 2
    auction = column(BIDS, "auction") - 1_000
    hot = auction == last // 100 * 100
    assert hot.mean() == pytest.approx(0.5, abs=0.01)
    cold, latest = auction[~hot], last[~hot]
    assert (cold >= np.maximum(latest - 100, 0)).all() and (cold <= latest + 10).all()
    assert set((latest - cold)[latest > 100].tolist()) >= set(range(-10, 99))


def test_three_in_four_bids_are_by_the_hot_bidder() -> None:
    last = np.arange(BIDS.num_rows) // 46
    bidder = column(BIDS, "bidder") - 1_000
    hot = bidder == last // 100 * 100 + 1
    assert hot.mean() == pytest.approx(0.75, abs=0.01)
    assert_active(bidder[~hot], last[~hot])


def test_three_in_four_auctions_are_of_the_hot_seller() -> None:
    last = np.arange(AUCTIONS.num_rows) // 3
    seller = column(AUCTIONS, "seller") - 1_000
    hot = seller == last // 100 * 100
    assert hot.mean() == pytest.approx(0.75, abs=0.01)
    assert_active(seller[~hot], last[~hot])


def assert_active(person: np.ndarray, last: np.ndarray) -> None:
    """People are among the last 1000, or up to ten ahead; all of them take part."""
    assert (person > last - 1_000).all() and (person >= 0).all() and (person <= last + 10).all()
    ages = (last - person)[last > 2_000]
    assert ages.min() < 0 and ages.max() > 950


def test_what_is_named_exists_at_about_that_time() -> None:
    opened_us = AUCTIONS["ts"].cast(pa.int64()).to_numpy()
    number = column(BIDS, "auction") - 1_000
    known = number < len(opened_us)
    assert known.mean() > 0.999
    ahead_us = opened_us[number[known]] - BIDS["ts"].cast(pa.int64()).to_numpy()[known]
    # Ten auctions ahead is at most four rounds of 50 events.
    assert ahead_us.max() <= 4 * 50 * 100
    assert (ahead_us < 0).mean() > 0.9


def test_channels_and_their_urls() -> None:
    channels, urls = BIDS["channel"].to_pylist(), BIDS["url"].to_pylist()
    hot = np.isin(channels, HOT_CHANNELS)
    assert hot.mean() == pytest.approx(0.5, abs=0.01)
    assert Counter(channels)["Google"] / len(channels) == pytest.approx(1 / 8, abs=0.01)
    pairs = set(zip(channels, urls, strict=True))
    assert len(pairs) == len(set(channels)) > 9_900
    page = re.compile(
        r"https://www\.nexmark\.com/[a-z]{3,4}/[a-z]{3,4}/[a-z]{3,4}/item\.htm\?query=1"
        r"(?:&channel_id=(\d+))?"
    )
    numbers = {channel: page.fullmatch(url)[1] for channel, url in pairs}
    assert all(numbers[channel] is None for channel in HOT_CHANNELS)
    others = {channel: of for channel, of in numbers.items() if channel not in HOT_CHANNELS}
    assert all(of is None or channel == f"channel-{of}" for channel, of in others.items())
    assert np.mean([of is not None for of in others.values()]) == pytest.approx(0.9, abs=0.02)


def test_rows_never_change() -> None:
    found = [
        Nexmark(kind=kind, events=1_000, seed=7, disorder_s=0.01).read(10, 11).drop_columns("ts")
        for kind in KINDS
    ]
    assert [", ".join(map(str, row.values())) for table in found for row in table.to_pylist()] == [
        "1011, Kate Walton, jvsxcm@llhn.com, 3279 0648 3054 8167, Boise, OR",
        "1008, ip dlbvbaj cynfqz, fdq, 33882, 34877, 2026-01-05 00:00:00.084300+00:00, 1007, 12",
        "1000, 1001, 40198714, Google, https://www.nexmark.com/xrp/uxjy/jtr/item.htm?query=1",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kind": "bid"},
            "NEXMark has no stream 'bid'; there are persons, auctions, bids. Did you mean bids?",
        ),
        ({"events": 0}, "NEXMark needs at least 1 event; got 0"),
        (
            {"events_per_s": 0},
            "the rate of NEXMark events must be 1 to 1,000,000 per second; got 0",
        ),
        (
            {"events": None},
            "this feed would never end and never wait. Limit its length or give a speedup.",
        ),
    ],
)
def test_what_nexmark_does_not_have(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        Nexmark(**{"kind": "bids", "events": 100, **options})
    assert str(error.value) == message
