"""NEXMark: people who open auctions and bid in them, the streams of the public benchmark.

Proportions, ratios, first identifiers, lists of names and the laws of choice are those of the
generator of Apache Beam and its descendant for Flink. Of every 50 events the first is a new person,
the next three are new auctions and the other 46 are bids. Differences from it: times are exact to
the microsecond, the ``extra`` padding is left out, the number in a URL is that of its channel, and
a bidder's identifier is always one of a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import listed, suggestion
from penstock.feeds.counter import Draws, Integers, Reals
from penstock.feeds.generated import TIMESTAMP, US_PER_S, Generated, check
from penstock.feeds.text import words

Kind = Literal["persons", "auctions", "bids"]

PERSONS_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("email", pa.string()),
        ("credit_card", pa.string()),
        ("city", pa.string()),
        ("state", pa.string()),
        ("ts", TIMESTAMP),
    ]
)
AUCTIONS_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("item_name", pa.string()),
        ("description", pa.string()),
        ("initial_bid", pa.int64()),
        ("reserve", pa.int64()),
        ("ts", TIMESTAMP),
        ("expires", TIMESTAMP),
        ("seller", pa.int64()),
        ("category", pa.int64()),
    ]
)
BIDS_SCHEMA = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("url", pa.string()),
        ("ts", TIMESTAMP),
    ]
)
NEXMARK_SCHEMAS: dict[Kind, pa.Schema] = {
    "persons": PERSONS_SCHEMA,
    "auctions": AUCTIONS_SCHEMA,
    "bids": BIDS_SCHEMA,
}

FIRST_PERSON_ID = 1_000
FIRST_AUCTION_ID = 1_000
FIRST_CATEGORY_ID = 10
CATEGORIES = 5
ACTIVE_PEOPLE = 1_000
IN_FLIGHT_AUCTIONS = 100
# Identifiers up to this far ahead may be named before their event, as if events had overtaken.
ID_LEAD = 10
# All but one in so many choices fall on the hot one, which changes with every batch.
HOT_AUCTION_RATIO = 2
HOT_SELLER_RATIO = 4
HOT_BIDDER_RATIO = 4
HOT_CHANNEL_RATIO = 2
HOT_BATCH = 100

STATES = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
CITIES = pa.array(
    [
        *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
        *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
    ]
)
FIRST_NAMES = [
    *("Peter", "Paul", "Luke", "John", "Saul", "Vicky"),
    *("Kate", "Julie", "Sarah", "Deiter", "Walter"),
]
LAST_NAMES = [
    *("Shultz", "Abrams", "Spencer", "White", "Bartels"),
    *("Walton", "Smith", "Jones", "Noris"),
]
NAMES = pa.array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES])
FOUR_DIGITS = pa.array([f"{number:04d}" for number in range(10_000)])
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000

_EVENTS_PER_ROUND = 50
_PRICE_STEPS = 4_096


class _Share(NamedTuple):
    """Which events of every round are of a kind: ``many`` of them from ``first`` on."""

    first: int
    many: int


_SHARES: dict[Kind, _Share] = {
    "persons": _Share(0, 1),
    "auctions": _Share(1, 3),
    "bids": _Share(4, 46),
}


@dataclass(frozen=True, kw_only=True)
class Nexmark(Generated):
    """One of the three NEXMark streams: the rows of one ``kind`` among ``events`` of all kinds.

    Streams with equal seed, start and rate belong together: a bid names an auction, and an auction
    a seller, whose event is before it, or at most ten of its kind ahead.

    >>> Nexmark(kind="bids", events=100_000).size
    92000
    >>> Nexmark(kind="auctions", events=100_000).read(0, 3)["id"].to_pylist()
    [1000, 1001, 1002]
    """

    kind: Kind
    events: int | None = None
    events_per_s: int = 10_000

    def __post_init__(self) -> None:
        check(
            self.kind in get_args(Kind),
            f"NEXMark has no stream {self.kind!r}; there are {listed(get_args(Kind))}",
            suggestion(str(self.kind), get_args(Kind)),
        )
        check(
            self.events is None or self.events >= 1,
            f"NEXMark needs at least 1 event; got {self.events}",
        )
        check(
            1 <= self.events_per_s <= US_PER_S,
            f"the rate of NEXMark events must be 1 to {US_PER_S:,} per second; "
            f"got {self.events_per_s}",
        )
        super().__post_init__()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the kind."""
        return NEXMARK_SCHEMAS[self.kind]

    @property
    def size(self) -> int | None:
        """How many of the events are of the kind; None without ``events``."""
        return None if self.events is None else self._count_among(self.events)

    def _count_among(self, events: int) -> int:
        share = _SHARES[self.kind]
        rounds, rest = divmod(events, _EVENTS_PER_ROUND)
        return rounds * share.many + min(max(rest - share.first, 0), share.many)

    def _offsets_us(self, first: int, stop: int) -> Integers:
        share = _SHARES[self.kind]
        round_, turn = np.divmod(np.arange(first, stop), share.many)
        event = round_ * _EVENTS_PER_ROUND + share.first + turn
        return event * US_PER_S // self.events_per_s

    def _count_before(self, offset_us: int) -> int:
        # Event e, at floor(e / rate), is before the offset if and only if e < offset * rate.
        return self._count_among(-(-offset_us * self.events_per_s // US_PER_S))

    def _rows(self, index: Integers, time_us: Integers) -> list[pa.Array]:
        make = {"persons": self._persons, "auctions": self._auctions, "bids": self._bids}
        return make[self.kind](index, time_us)

    def _draws(self, what: str) -> Draws:
        return Draws(self.seed, f"nexmark.{self.kind}.{what}")

    def _persons(self, index: Integers, time_us: Integers) -> list[pa.Array]:
        return [
            pa.array(index + FIRST_PERSON_ID),
            self._one_of(NAMES, "name", index),
            self._emails(index),
            self._credit_cards(index),
            self._one_of(CITIES, "city", index),
            self._one_of(STATES, "state", index),
            pa.array(time_us).view(TIMESTAMP),
        ]

    def _auctions(self, index: Integers, time_us: Integers) -> list[pa.Array]:
        initial_bid = self._price("initial_bid", index)
        category = self._draws("category").below(CATEGORIES, index)
        return [
            pa.array(index + FIRST_AUCTION_ID),
            words(self._draws("item_name"), index, 20, spaces=True),
            words(self._draws("description"), index, 100, spaces=True),
            pa.array(initial_bid),
            pa.array(initial_bid + self._price("reserve", index)),
            pa.array(time_us).view(TIMESTAMP),
            pa.array(time_us + self._length_us(index)).view(TIMESTAMP),
            pa.array(self._seller(index)),
            pa.array(category + FIRST_CATEGORY_ID),
        ]

    def _bids(self, index: Integers, time_us: Integers) -> list[pa.Array]:
        round_ = index // _SHARES["bids"].many
        channels, urls = _channels(self.seed)
        channel = pa.array(self._channel(index))
        return [
            pa.array(self._auction(index, round_)),
            pa.array(self._bidder(index, round_)),
            pa.array(self._price("price", index)),
            channels.take(channel),
            urls.take(channel),
            pa.array(time_us).view(TIMESTAMP),
        ]

    def _auction(self, index: Integers, round_: Integers) -> Integers:
        """Half of the bids go to the first auction of the batch, the others to any in flight."""
        last = round_ * _SHARES["auctions"].many + _SHARES["auctions"].many - 1
        oldest = np.maximum(last - IN_FLIGHT_AUCTIONS, 0)
        cold = oldest + self._draws("auction").below(last - oldest + 1 + ID_LEAD, index)
        hot = self._draws("hot_auction").below(HOT_AUCTION_RATIO, index) > 0
        return np.where(hot, last // HOT_BATCH * HOT_BATCH, cold) + FIRST_AUCTION_ID

    def _bidder(self, index: Integers, round_: Integers) -> Integers:
        hot = self._draws("hot_bidder").below(HOT_BIDDER_RATIO, index) > 0
        # The second of a batch, so that the hot bidder is not the hot seller.
        favourite = round_ // HOT_BATCH * HOT_BATCH + 1
        return np.where(hot, favourite, self._anyone("bidder", index, round_)) + FIRST_PERSON_ID

    def _seller(self, index: Integers) -> Integers:
        round_ = index // _SHARES["auctions"].many
        hot = self._draws("hot_seller").below(HOT_SELLER_RATIO, index) > 0
        favourite = round_ // HOT_BATCH * HOT_BATCH
        return np.where(hot, favourite, self._anyone("seller", index, round_)) + FIRST_PERSON_ID

    def _anyone(self, what: str, index: Integers, round_: Integers) -> Integers:
        """Any of the active people, of whom the last one came with this round, or a few ahead."""
        people = round_ + 1
        active = np.minimum(people, ACTIVE_PEOPLE)
        person: Integers = people - active + self._draws(what).below(active + ID_LEAD, index)
        return person

    def _price(self, what: str, index: Integers) -> Integers:
        """10**(6 U) dollars in cents, U uniform in [0, 1)."""
        coarse, fine = _price_factors()
        upper, lower = np.divmod(self._draws(what).below(_PRICE_STEPS**2, index), _PRICE_STEPS)
        return (coarse[upper] * fine[lower]).round().astype(np.int64)

    def _length_us(self, index: Integers) -> Integers:
        """How long an auction lasts: on average until 100 more have been opened."""
        events = IN_FLIGHT_AUCTIONS * _EVENTS_PER_ROUND // _SHARES["auctions"].many
        longest_ms = max(2 * (events * 1_000 // self.events_per_s), 1)
        return (self._draws("length").below(longest_ms, index) + 1) * 1_000

    def _channel(self, index: Integers) -> Integers:
        """A row of the table of channels: one of the hot ones, which are first, in half of all."""
        hot = self._draws("hot_channel").below(HOT_CHANNEL_RATIO, index) > 0
        well_known = self._draws("well_known").below(len(HOT_CHANNELS), index)
        other = self._draws("channel").below(CHANNELS, index)
        return np.where(hot, well_known, other + len(HOT_CHANNELS))

    def _emails(self, index: Integers) -> pa.Array:
        user = words(self._draws("email.user"), index, 7)
        host = words(self._draws("email.host"), index, 5)
        return pc.binary_join_element_wise(user, "@", host, ".com", "")

    def _credit_cards(self, index: Integers) -> pa.Array:
        parts = [self._one_of(FOUR_DIGITS, f"credit_card.{part}", index) for part in range(4)]
        return pc.binary_join_element_wise(*parts, " ")

    def _one_of(self, choices: pa.Array, what: str, index: Integers) -> pa.Array:
        return choices.take(pa.array(self._draws(what).below(len(choices), index)))


@lru_cache(maxsize=1)
def _price_factors() -> tuple[Reals, Reals]:
    """Factors of a price for the upper and the lower digits of U.

    A product of two table entries has the same bits on every processor, a power may not.
    """
    coarse = [100.0 * 10.0 ** (6 * step / _PRICE_STEPS) for step in range(_PRICE_STEPS)]
    fine = [10.0 ** (6 * step / _PRICE_STEPS**2) for step in range(_PRICE_STEPS)]
    return np.array(coarse), np.array(fine)


@lru_cache(maxsize=8)
def _channels(seed: int) -> tuple[pa.Array, pa.Array]:
    """The name and the URL of every channel, the hot ones first.

    Nine in ten URLs of the other channels carry the channel's number, the hot ones none.
    """
    count = len(HOT_CHANNELS) + CHANNELS
    number = np.arange(count)
    parts = [words(Draws(seed, f"nexmark.url.{part}"), number, 5) for part in range(3)]
    pages = pc.binary_join_element_wise("https://www.nexmark.com", *parts, "item.htm?query=1", "/")
    numbered = Draws(seed, "nexmark.url.numbered").below(10, number) > 0
    tails = ["" for _ in HOT_CHANNELS] + [
        f"&channel_id={channel}" if numbered[channel + len(HOT_CHANNELS)] else ""
        for channel in range(CHANNELS)
    ]
    names = [*HOT_CHANNELS, *(f"channel-{channel}" for channel in range(CHANNELS))]
    return pa.array(names), pc.binary_join_element_wise(pages, pa.array(tails), "")
