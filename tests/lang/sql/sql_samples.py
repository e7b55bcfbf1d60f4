"""What the SQL tests share: a catalog, graphs as text, errors as text."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from penstock.errors import InputError
from penstock.lang.sql import KnownNames, parse_query
from penstock.model.network import Network, Query
from penstock.model.operators import Operator
from penstock.model.schema import Schema, Shape
from penstock.model.sources import Database, GeneratorSource, Stream, Table

_BREAK = "\n    "
NEXMARK = Path(__file__).parents[3] / "examples" / "nexmark"


def blocks(name: str) -> list[str]:
    """The parts of a fixture, between blank lines; those that begin with # are headings."""
    text = (Path(__file__).parent / name).read_text()
    return [part for part in text.strip().split("\n\n") if not part.startswith("#")]


def timed(schema: str) -> Shape:
    return Shape.timed(Schema.parse(schema), "ts")


READINGS = timed("ts timestamp, home string, district string, kwh double")
BIDS = timed(
    "auction bigint, bidder bigint, price bigint, channel string, url string, ts timestamp"
)
AUCTIONS = timed(
    "id bigint, item_name string, description string, initial_bid bigint, reserve bigint, "
    "ts timestamp, expires timestamp, seller bigint, category bigint"
)
PERSONS = timed(
    "id bigint, name string, email string, credit_card string, city string, state string, "
    "ts timestamp"
)
DISTRICTS = Table(
    "districts", Schema.parse("district string, city string, people int"), path=Path("d.csv")
)
LIMITS = Table(
    "limits", Schema.parse("home string, top double"), database=Database("sqlite:///ami.db")
)
TOTALS = Table(
    "totals",
    Schema.parse("home string, kwh double, n bigint"),
    database=Database("sqlite:///ami.db"),
)
CATALOG = KnownNames(
    {
        "readings": READINGS,
        "bids": BIDS,
        "auctions": AUCTIONS,
        "persons": PERSONS,
        "untimed": Shape(Schema.parse("a int, b string")),
        "unordered": Shape.timed(Schema.parse("ts timestamp, a int"), "ts", watermarked=False),
    },
    {"districts": DISTRICTS, "limits": LIMITS, "totals": TOTALS},
)


def operators(text: str, name: str = "q", catalog: KnownNames = CATALOG) -> tuple[Operator, ...]:
    return parse_query(name, text, catalog).operators


def drawn(text: str, name: str = "q", catalog: KnownNames = CATALOG) -> str:
    """The graph of a query, one operator a line."""
    lines = []
    for operator in operators(text, name, catalog):
        reads = ", ".join(one.stream for one in operator.inputs)
        line = f"{operator.name} = {operator.kind}({reads})"
        long = len(line) + len(operator.details) > 84
        lines.append(f"{line}{_BREAK if long else ' '}{operator.details}".rstrip())
    return "\n".join(lines)


def told(text: str) -> str:
    """An expected text, as indented as it is in the test."""
    return dedent(text).strip("\n")


def message(text: str, catalog: KnownNames = CATALOG) -> str:
    """The error a query gives."""
    with pytest.raises(InputError) as caught:
        parse_query("q", text, catalog, "ami.yaml, query q")
    return str(caught.value)


def complaint(text: str) -> str:
    """The error a query gives, less the line that says where."""
    return "\n".join(message(text).splitlines()[1:])


def network(parsed: tuple[Operator, ...], catalog: KnownNames = CATALOG) -> Network:
    streams = tuple(
        Stream(name, GeneratorSource(name), shape, 0 if shape.times and shape.watermarked else None)
        for name, shape in catalog.shapes.items()
    )
    last = parsed[-1].name
    return Network(streams, parsed, (Query(last, last),))
