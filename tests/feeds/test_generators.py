"""Generators by name: what deployment files may say, and what they are told otherwise."""

import datetime as dt

import pytest

from penstock.errors import InputError
from penstock.feeds.feed import Feed
from penstock.feeds.generators import GENERATORS, generator, schema_of
from penstock.feeds.meters import Meters
from penstock.feeds.nexmark import Nexmark
from penstock.feeds.packets import Packets

MIDNIGHT = "2026-02-01T00:00:00+00:00"

SHORT: dict[str, dict[str, object]] = {
    "meters": {"days": 1},
    "packets": {"seconds": 1},
    "trades": {"seconds": 1},
    "nexmark.persons": {"events": 100},
    "nexmark.auctions": {"events": 100},
    "nexmark.bids": {"events": 100},
}


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        (
            "meters",
            {
                "homes": 300,
                "every": "30min",
                "speedup": 600,
                "bursts": "evening",
                "days": 7,
                "disorder": "2min",
            },
            Meters(homes=300, every_s=1_800, speedup=600, days=7, disorder_s=120),
        ),
        ("meters", {"districts": 7, "days": 1}, Meters(districts=7, days=1)),
        ("nexmark.bids", {"events": 100_000, "rate": 10_000}, Nexmark(kind="bids", events=100_000)),
        ("nexmark.persons", {"speedup": 2.5}, Nexmark(kind="persons", speedup=2.5)),
        (
            "packets",
            {"rate": 1_000, "hurst": 0.7, "seconds": 60, "hosts": 9, "skew": 1, "seed": 4},
            Packets(rate_per_s=1_000, hurst=0.7, seconds=60, hosts=9, skew=1, seed=4),
        ),
        ("packets", {"seconds": "1h", "disorder": "500ms"}, Packets(seconds=3_600, disorder_s=0.5)),
    ],
)
def test_options_as_written(name: str, options: dict[str, object], expected: Feed) -> None:
    assert generator(name, options) == expected


@pytest.mark.parametrize("written", ["max", None])
def test_as_fast_as_possible(written: object) -> None:
    assert generator("meters", {"days": 1, "speedup": written}) == Meters(days=1)


@pytest.mark.parametrize(
    ("written", "start"),
    [
        (MIDNIGHT, MIDNIGHT),
        (dt.datetime(2026, 2, 1, tzinfo=dt.UTC), MIDNIGHT),
        (dt.date(2026, 2, 1), "2026-02-01"),
    ],
)
def test_starts_as_yaml_reads_them(written: object, start: str) -> None:
    assert generator("meters", {"days": 1, "start": written}) == Meters(days=1, start=start)


@pytest.mark.parametrize("name", GENERATORS)
def test_every_generator_works_with_defaults(name: str) -> None:
    feed = generator(name, SHORT[name])
    assert feed.read(0, 2).schema == feed.schema == schema_of(name)
    assert all(option.help for option in GENERATORS[name].options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "meter",
            {},
            "no generator 'meter'; there are meters, packets, trades, nexmark.persons, "
            "nexmark.auctions, nexmark.bids. Did you mean meters?",
        ),
        (
            "packets",
            {"hirst": 0.8},
            "generator packets has no option 'hirst'; there are rate, hurst, hosts, skew, seconds, "
            "seed, start, speedup, disorder. Did you mean hurst?",
        ),
        ("meters", {"homes": "many"}, "generator meters, option homes: 'many' is not a number"),
        ("meters", {"homes": True}, "generator meters, option homes: True is not a number"),
        ("meters", {"homes": 1.5}, "generator meters, option homes: 1.5 is not a whole number"),
        (
            "meters",
            {"days": float("inf")},
            "generator meters, option days: inf is not a finite number",
        ),
        (
            "meters",
            {"every": "soon"},
            "generator meters, option every: 'soon' is not a duration. "
            "Write for example 500ms, 30 s, 2min, 6 hours or 1 day.",
        ),
        ("meters", {"every": [1]}, "generator meters, option every: [1] is not a number"),
        (
            "meters",
            {"speedup": "fast"},
            "generator meters, option speedup: 'fast' is not a speedup. Write a number or max.",
        ),
        ("meters", {"bursts": 3}, "generator meters, option bursts: 3 is not text"),
        (
            "meters",
            {"start": "noon", "days": 1},
            "generator meters: 'noon' is not a time. Write for example 2026-01-05T00:00:00Z.",
        ),
        ("meters", {"homes": 0}, "generator meters: meters need 1 to 1,000,000 homes; got 0"),
        (
            "nexmark.bids",
            {},
            "generator nexmark.bids: this feed would never end and never wait. "
            "Limit its length or give a speedup.",
        ),
    ],
)
def test_what_cannot_be_written(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        generator(name, options)
    assert str(error.value) == message


def test_schema_of_an_unknown_generator() -> None:
    with pytest.raises(InputError, match="no generator 'bids'; there are meters"):
        schema_of("bids")
