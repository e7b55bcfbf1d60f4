"""The generators by name, with the options a deployment file may give them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import InputError, listed, suggestion
from penstock.feeds.feed import Feed
from penstock.feeds.generated import US_PER_S
from penstock.model.durations import duration_us

if TYPE_CHECKING:
    from penstock.feeds.nexmark import Kind


@dataclass(frozen=True)
class Option:
    """An option as written in a deployment file, and the field of the feed that it sets."""

    name: str
    field: str
    value_of: Callable[[object], object]
    help: str


@dataclass(frozen=True)
class GeneratorSpec:
    """A generator that a deployment file can name: what it makes and which options it takes.

    ``build`` and ``schema`` load the generator's module only when called: a process that reads
    one generator need not hold the others' tables and libraries.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    build: Callable[..., Feed]
    schema: Callable[[], pa.Schema]

    def feed(self, options: Mapping[str, object]) -> Feed:
        """The feed these options describe; an option without a value keeps its default."""
        known = {option.name: option for option in self.options}
        fields = {}
        for name, written in options.items():
            if name not in known:
                raise self._unknown(name)
            if written is not None:
                fields[known[name].field] = self._value(known[name], written)
        try:
            return self.build(**fields)
        except InputError as error:
            raise InputError(f"generator {self.name}: {error.what}", hint=error.hint) from None

    def _value(self, option: Option, written: object) -> object:
        try:
            return option.value_of(written)
        except InputError as error:
            what = f"generator {self.name}, option {option.name}: {error.what}"
            raise InputError(what, hint=error.hint) from None

    def _unknown(self, name: str) -> InputError:
        names = [option.name for option in self.options]
        return InputError(
            f"generator {self.name} has no option {name!r}; there are {listed(names)}",
            hint=suggestion(str(name), names),
        )


def generator(name: str, options: Mapping[str, object]) -> Feed:
    """The feed of a generator with options as written in a deployment file.

    Durations are written like "30min", "2 min" or "1 day", or as a number of seconds; a ``speedup``
    of "max", or none, makes all rows due at once.

    >>> generator("meters", {"homes": 300, "every": "30min", "days": 7, "disorder": "2min"}).size
    100800
    >>> generator("nexmark.bids", {"events": 100_000, "rate": 10_000}).schema.names
    ['auction', 'bidder', 'price', 'channel', 'url', 'ts']
    >>> generator("meters", {"home": 300})
    Traceback (most recent call last):
    penstock.errors.InputError: generator meters has no option 'home'; there are homes, every, \
days, bursts, districts, seed, start, speedup, disorder. Did you mean homes?
    """
    return _spec(name).feed(options)


def schema_of(name: str) -> pa.Schema:
    """The columns a generator makes, whatever its options.

    >>> schema_of("packets").names
    ['ts', 'src', 'dst', 'protocol', 'bytes']
    """
    return _spec(name).schema()


def paced_rate_per_s(name: str, options: Mapping[str, object]) -> float | None:
    """Rows per second of wall time of a paced generator; None where it gives all at once.

    >>> round(paced_rate_per_s("meters", {"homes": 300, "every": "30min", "speedup": 600}))
    100
    """
    if pace_of(options) is None:
        return None
    feed = generator(name, options)
    # Over a stretch that a finite feed does not outlast, so that its end does not lower the rate.
    seconds = 100.0
    while feed.size is not None and feed.due(seconds) >= feed.size and seconds > 0.1:
        seconds /= 2
    return feed.due(seconds) / seconds


def pace_of(options: Mapping[str, object]) -> float | None:
    """Seconds of event time in a second of wall time; None where a generator gives all at once."""
    return _pace(options.get("speedup", "max"))


def _spec(name: str) -> GeneratorSpec:
    if name not in GENERATORS:
        raise InputError(
            f"no generator {name!r}; there are {listed(GENERATORS)}",
            hint=suggestion(str(name), GENERATORS),
        )
    return GENERATORS[name]


def _number(written: object) -> float:
    if isinstance(written, bool) or not isinstance(written, int | float):
        raise InputError(f"{written!r} is not a number")
    if not math.isfinite(written):
        raise InputError(f"{written!r} is not a finite number")
    return written


def _whole(written: object) -> int:
    number = _number(written)
    if number != int(number):
        raise InputError(f"{written!r} is not a whole number")
    return int(number)


def _seconds(written: object) -> float:
    if not isinstance(written, str):
        written = _number(written)
    return duration_us(written) / US_PER_S


def _pace(written: object) -> float | None:
    if written == "max":
        return None
    if isinstance(written, str):
        raise InputError(f"{written!r} is not a speedup", hint="Write a number or max.")
    return _number(written)


def _instant(written: object) -> str:
    # YAML turns an unquoted time into a date of its own.
    if isinstance(written, datetime | date):
        return written.isoformat()
    return _text(written)


def _text(written: object) -> str:
    if not isinstance(written, str):
        raise InputError(f"{written!r} is not text")
    return written


_COMMON = (
    Option("seed", "seed", _whole, "other numbers give other rows of the same kind"),
    Option("start", "start", _instant, "event time of the beginning, as 2026-01-05T00:00:00Z"),
    Option("speedup", "speedup", _pace, "seconds of event time in a second, or max"),
    Option("disorder", "disorder_s", _seconds, "how late a row may be in event time"),
)
_METERS = (
    Option("homes", "homes", _whole, "number of homes"),
    Option("every", "every_s", _seconds, "time between two readings of a home"),
    Option("days", "days", _number, "length of the feed; endless without"),
    Option("bursts", "bursts", _text, "evening or none"),
    Option("districts", "districts", _whole, "number of districts, one for 30 homes without"),
)
_PACKETS = (
    Option("rate", "rate_per_s", _number, "packets per second of event time"),
    Option("hurst", "hurst", _number, "self-similarity, between 0.5 and 1"),
    Option("hosts", "hosts", _whole, "number of hosts"),
    Option("skew", "skew", _number, "exponent of Zipf's law of hosts, 0 for none"),
    Option("seconds", "seconds", _seconds, "length of the feed; endless without"),
)
_TRADES = (
    Option("rate", "rate_per_s", _number, "trades per second of event time"),
    Option("symbols", "symbols", _whole, "number of symbols"),
    Option("seconds", "seconds", _seconds, "length of the feed; endless without"),
)
_NEXMARK = (
    Option("events", "events", _whole, "length in events of all kinds; endless without"),
    Option("rate", "events_per_s", _whole, "events of all kinds per second of event time"),
)


def _meters(**fields: Any) -> Feed:
    from penstock.feeds.meters import Meters

    return Meters(**fields)


def _meters_schema() -> pa.Schema:
    from penstock.feeds.meters import METERS_SCHEMA

    return METERS_SCHEMA


def _packets(**fields: Any) -> Feed:
    from penstock.feeds.packets import Packets

    return Packets(**fields)


def _packets_schema() -> pa.Schema:
    from penstock.feeds.packets import PACKETS_SCHEMA

    return PACKETS_SCHEMA


def _trades(**fields: Any) -> Feed:
    from penstock.feeds.trades import Trades

    return Trades(**fields)


def _trades_schema() -> pa.Schema:
    from penstock.feeds.trades import TRADES_SCHEMA

    return TRADES_SCHEMA


def _nexmark(kind: Kind, summary: str) -> GeneratorSpec:
    def build(**fields: Any) -> Feed:
        from penstock.feeds.nexmark import Nexmark

        return Nexmark(kind=kind, **fields)

    def schema() -> pa.Schema:
        from penstock.feeds.nexmark import NEXMARK_SCHEMAS

        return NEXMARK_SCHEMAS[kind]

    return GeneratorSpec(f"nexmark.{kind}", summary, _NEXMARK + _COMMON, build, schema)


GENERATORS: Mapping[str, GeneratorSpec] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            GeneratorSpec(
                "meters",
                "electricity meters of homes",
                _METERS + _COMMON,
                _meters,
                _meters_schema,
            ),
            GeneratorSpec(
                "packets",
                "network packets in self-similar bursts",
                _PACKETS + _COMMON,
                _packets,
                _packets_schema,
            ),
            GeneratorSpec("trades", "stock trades", _TRADES + _COMMON, _trades, _trades_schema),
            _nexmark("persons", "NEXMark: new people"),
            _nexmark("auctions", "NEXMark: new auctions"),
            _nexmark("bids", "NEXMark: bids"),
        )
    }
)
