"""Random queries as small structures, and what each means in Penstock's and in DuckDB's SQL.

A pipeline is a list of parts, each reading streams or parts before it. Every part gives an event
time called ``ts`` and some more columns. Penstock has windows, DuckDB has not: there a window is
a number computed from a row's time, a session a run of rows without a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from answers.random_expressions import Columns, Expression, condition, expression

ROW = {"ts": "time", "k": "string", "g": "int", "v": "int", "x": "double"}
TABLE = {"label": "string", "weight": "int"}

# What is computed, from what, giving what, and how DuckDB writes it if not alike; {} is the value. Sums of doubles depend on the order
# of rows in their last digit: as "real" they are shown but never computed with or compared.
_COMPUTED = (
    ("count(*)", "", "int"),
    ("count({})", "string", "int"),
    ("sum({})", "int", "int"),
    ("sum({})", "double", "real"),
    ("min({})", "string", "string"),
    ("max({})", "int", "int"),
    ("avg({})", "int", "real"),
    ("avg({})", "double", "real"),
    ("stddev({})", "double", "real"),
    ("variance({})", "int", "real"),
    ("count_if({})", "bool", "int", "count(*) FILTER (WHERE {})"),
    ("count(*) FILTER (WHERE {})", "bool", "int"),
    ("sum(v) FILTER (WHERE {})", "bool", "int"),
    ("max({})", "time", "time"),
)


Lengths = tuple[float, float | None]
# Seconds: how long a window is and how far it slides, or the gap of a session.
GAPS: tuple[Lengths, ...] = ((0.25, None), (1, None), (4, None), (9, None))
LENGTHS: tuple[Lengths, ...] = (
    (10, 10),
    (10, 10),
    (12, 4),
    (7, 3),
    (30, 30),
    (60, 20),
    (0.75, 0.75),
    (4, None),
    (9, None),
)


@dataclass(frozen=True)
class Aggregate:
    """Something to compute of a group: its two spellings, the type it takes and the one it gives."""

    penstock: str
    takes: str
    gives: str
    duck: str = ""


AGGREGATES = tuple(Aggregate(*one) for one in _COMPUTED)


@dataclass(frozen=True)
class Part:
    """Something that gives rows: a stream when it is nothing more."""

    name: str
    columns: Columns


@dataclass(frozen=True)
class Selected(Part):
    """Some rows of another part, with columns computed from theirs."""

    source: Part
    where: Expression | None
    given: Mapping[str, Expression]


@dataclass(frozen=True)
class United(Part):
    """The rows of two parts with the same columns."""

    branches: tuple[Part, Part]


@dataclass(frozen=True)
class Grouped(Part):
    """Groups of the rows in a window: ``size_us`` every ``slide_us``, or sessions without slide.

    ``ts`` is the window's end, or its start if ``by_start``.
    """

    source: Part
    size_us: int
    slide_us: int | None
    by_start: bool
    keys: Mapping[str, Expression]
    aggregates: Mapping[str, tuple[Aggregate, Expression | None]]
    having: Expression | None


@dataclass(frozen=True)
class Paired(Part):
    """Rows of two parts with equal keys, the right one between two distances after the left."""

    left: Part
    right: Part
    kind: str
    keys: tuple[str, ...]
    lower_us: int
    upper_us: int
    form: int
    also: str
    time_of: str


@dataclass(frozen=True)
class Enriched(Part):
    """Rows with what a table says about them."""

    source: Part
    kind: str


@dataclass(frozen=True)
class Pipeline:
    """A query: parts in reading order, the last of which is the result."""

    parts: tuple[Part, ...]
    nested: bool


def pipeline(random: Random, streams: list[str]) -> Pipeline:
    """A random pipeline of one to four parts over the streams."""
    sources = [Part(name, ROW) for name in streams]
    parts: list[Part] = []
    for number in range(random.choice((1, 2, 2, 3, 3, 4))):
        # The newest part is read, so that nothing is made for nobody.
        newest = parts[-1] if parts else random.choice(sources)
        others = [*sources, *parts]
        parts.append(_part(random, f"p{number}", newest, others))
    return Pipeline(tuple(parts), random.random() < 0.3)


def session_pipeline(random: Random, streams: list[str]) -> Pipeline:
    """Sessions of some of a stream's rows."""
    some = _selected(random, "p0", Part(random.choice(streams), ROW))
    return Pipeline((some, _grouped(random, "p1", some, GAPS)), random.random() < 0.3)


def _part(random: Random, name: str, source: Part, others: list[Part]) -> Part:
    kind = random.choice(("select", "union", "group", "group", "group", "pair", "pair", "enrich"))
    if kind == "group":
        return _grouped(random, name, source)
    if kind == "pair":
        return _paired(random, name, source, random.choice(others))
    if kind == "enrich" and "k" in source.columns and not set(TABLE) & set(source.columns):
        columns = {**source.columns, **TABLE}
        return Enriched(name, columns, source, random.choice(("", "LEFT ")))
    alike = [
        other for other in others if list(other.columns.items()) == list(source.columns.items())
    ]
    if kind == "union" and alike:
        return United(name, source.columns, (source, random.choice(alike)))
    return _selected(random, name, source)


def _selected(random: Random, name: str, source: Part) -> Part:
    where = condition(random, source.columns) if random.random() < 0.8 else None
    given = {"ts": Expression("time", column="ts")}
    for one, type in source.columns.items():
        if one != "ts" and random.random() < 0.8:
            given[one] = Expression(type, column=one)
    for number in range(random.randint(1, 2)):
        type = random.choice(("int", "double", "string"))
        given[f"{name}_{number}"] = expression(random, type, source.columns)
    columns = {one: its.type for one, its in given.items()}
    return Selected(name, columns, source, where, given)


def _grouped(random: Random, name: str, source: Part, lengths: Sequence[Lengths] = LENGTHS) -> Part:
    size_us, slide_us = random.choice(lengths)
    keys = {}
    for number in range(random.choice((0, 1, 1, 2))):
        type = random.choice(("string", "int"))
        keys[f"{name}_k{number}"] = expression(random, type, source.columns, random.choice((0, 1)))
    keys = {one: key for one, key in keys.items() if key.column or key.operation}
    fitting = [one for one in AGGREGATES if "(v)" not in one.penstock or "v" in source.columns]
    aggregates: dict[str, tuple[Aggregate, Expression | None]] = {}
    for number in range(random.randint(0 if keys else 1, 3)):
        one = random.choice(fitting)
        value = expression(random, one.takes, source.columns, 1) if one.takes else None
        aggregates[f"{name}_a{number}"] = one, value
    columns = {"ts": "time", **{one: key.type for one, key in keys.items()}}
    columns |= {one: aggregate.gives for one, (aggregate, _) in aggregates.items()}
    decided = {one: type for one, type in columns.items() if type in ("int", "string")}
    having = condition(random, decided) if decided and random.random() < 0.4 else None
    by_start = slide_us is not None and random.random() < 0.4
    slide = None if slide_us is None else int(slide_us * 1e6)
    return Grouped(
        name, columns, source, int(size_us * 1e6), slide, by_start, keys, aggregates, having
    )


def _paired(random: Random, name: str, left: Part, right: Part) -> Part:
    kind = random.choice(("", "", "LEFT "))
    shared = [one for one, type in left.columns.items() if right.columns.get(one) == type]
    keys = tuple(one for one in shared if left.columns[one] in ("string", "int"))[:1]
    lower, upper = random.choice(((0, 5), (-3, 3), (0, 0), (-8, -2), (2, 9), (-10, 0), (0, 2.5)))
    form = 0 if lower == upper else random.randint(0, 3)
    ints = [[one for one, type in side.columns.items() if type == "int"] for side in (left, right)]
    also = random.choice(("", "", "right", "both")) if all(ints) else ""
    if also == "both":
        also = f"l.{ints[0][-1]} <= r.{ints[1][-1]}"
    elif also:
        also = f"r.{ints[1][-1]} > 1"
    time_of = "l" if kind else random.choice("lr")
    columns = {"ts": "time"}
    columns |= {f"l_{one}": type for one, type in left.columns.items() if one != "ts"}
    columns |= {f"r_{one}": type for one, type in right.columns.items() if one != "ts"}
    lower_us, upper_us = int(lower * 1e6), int(upper * 1e6)
    return Paired(name, columns, left, right, kind, keys, lower_us, upper_us, form, also, time_of)
