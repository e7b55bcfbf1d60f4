"""A feed of every kind, as short as its promises can be seen on, and endless ones."""

import hashlib

from penstock.feeds.feed import Feed
from penstock.feeds.generated import Generated
from penstock.feeds.meters import Meters
from penstock.feeds.nexmark import Nexmark
from penstock.feeds.packets import Packets
from penstock.feeds.trades import Trades

FEEDS: dict[str, Generated] = {
    "meters": Meters(homes=37, days=2, seed=3, speedup=3_600, disorder_s=300),
    "meters in order": Meters(homes=37, days=2, seed=3, speedup=3_600),
    "packets": Packets(rate_per_s=100, seconds=30, seed=3, speedup=2, disorder_s=1.5),
    "packets in order": Packets(rate_per_s=100, seconds=30, seed=3, speedup=2),
    "trades": Trades(rate_per_s=100, seconds=30, seed=3, speedup=2, disorder_s=1.5),
    "persons": Nexmark(kind="persons", events=60_000, seed=3, speedup=1, disorder_s=0.2),
    "auctions": Nexmark(kind="auctions", events=40_000, seed=3, speedup=1, disorder_s=0.2),
    "bids": Nexmark(kind="bids", events=3_000, seed=3, speedup=1, disorder_s=0.05),
    "bids in order": Nexmark(kind="bids", events=3_000, seed=3, speedup=1),
}
ENDLESS: dict[str, Generated] = {
    "meters": Meters(speedup=600, disorder_s=120),
    "packets": Packets(rate_per_s=2_000, speedup=1, disorder_s=0.5),
    "trades": Trades(rate_per_s=2_000, speedup=1, disorder_s=0.5),
    "persons": Nexmark(kind="persons", speedup=1, disorder_s=1),
    "auctions": Nexmark(kind="auctions", speedup=1, disorder_s=1),
    "bids": Nexmark(kind="bids", speedup=1, disorder_s=0.1),
}


def digest(feed: Feed, start: int, stop: int) -> str:
    return hashlib.sha256(repr(feed.read(start, stop).to_pylist()).encode()).hexdigest()
