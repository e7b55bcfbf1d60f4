"""Equal signatures mean equal rows: random pipelines and their neighbours, asked of DuckDB.

``PENSTOCK_EXAMPLES=200 pytest tests/spark/answers/test_canonical_rows.py`` tries more of them.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from penstock.errors import InputError
from penstock.lang.deployment import parse_deployment
from penstock.model.canonical import canonical_streams

from answers.oracle import Oracle, Row
from answers.random_expressions import condition
from answers.random_pipelines import Grouped, Paired, Part, Pipeline, Selected, United, pipeline
from answers.random_queries import duck_query, penstock_query
from answers.test_random_pipelines import (
    AGES,
    AGES_AT_ONCE,
    DEPLOYMENT,
    LATENESS_S,
    SCHEMA,
    query_text,
    random_rows,
)

pytestmark = pytest.mark.core

EXAMPLES = int(os.environ.get("PENSTOCK_EXAMPLES", "2"))


def neighbours(random: Random, made: Pipeline) -> Iterator[Pipeline]:
    """The pipeline itself, written otherwise, and with its last part changed a little."""
    yield made
    yield replace(made, nested=not made.nested)
    *before, last = made.parts
    for changed in changes(random, last):
        yield replace(made, parts=(*before, changed))


def changes(random: Random, part: Part) -> Iterator[Part]:
    match part:
        case Selected(where=where, given=given):
            yield replace(part, where=None)
            yield replace(part, where=condition(random, part.source.columns))
            yield replace(part, given=dict(reversed(given.items())))
            fewer = dict(list(given.items())[:-1])
            columns = {name: part.columns[name] for name in fewer}
            yield replace(part, columns=columns, where=where, given=fewer)
        case United(branches=branches):
            yield replace(part, branches=branches[::-1])
            yield replace(part, branches=(branches[0], branches[0]))
        case Grouped(slide_us=slide_us, size_us=size_us):
            yield replace(part, having=None)
            yield replace(part, keys=dict(reversed(part.keys.items())))
            yield replace(part, by_start=not part.by_start and slide_us is not None)
            yield replace(part, size_us=size_us * 2, slide_us=slide_us)
        case Paired(kind=kind):
            yield replace(part, also="")
            yield replace(part, keys=())
            yield replace(part, upper_us=part.upper_us + 1_000_000)
            yield replace(part, kind="" if kind else "LEFT ", time_of="l")


def signed(made: Pipeline) -> tuple[str, tuple[str, ...]] | None:
    """The signature of a pipeline and its columns in canonical order; None if it is refused."""
    try:
        text = DEPLOYMENT.format(schema=SCHEMA) + query_text("q", penstock_query(made))
        stream = canonical_streams(parse_deployment(text, "test", Path("/data")).network)["q"]
    except InputError:
        return None
    return stream.signature, stream.ordered_columns()


def bag(oracle: Oracle, made: Pipeline, columns: tuple[str, ...]) -> Counter[Row]:
    return Counter(oracle.rows(f"SELECT {', '.join(columns)} FROM ({duck_query(made)})"))


@pytest.mark.parametrize("seed", range(1, 1 + EXAMPLES))
def test_equal_signatures_mean_equal_rows(seed: int) -> None:
    random = Random(seed)
    oracle = Oracle()
    ages = sorted(random.sample(AGES, AGES_AT_ONCE))
    for name, count in (("a", 60), ("b", 40), ("e", 0)):
        rows = random_rows(random, count, disorder_s=11, ages=ages)
        oracle.arrivals(name, rows, "ts", LATENESS_S[name] * 1_000_000)
    values = "('a', 'first', 1), ('b', 'second', NULL), ('b', 'again', 5), ('zz', 'nobody', 7)"
    oracle.execute(f"CREATE TABLE labels AS FROM (VALUES {values}) t(key, label, weight)")
    answers: dict[str, list[tuple[Counter[Row], str]]] = defaultdict(list)
    for _ in range(4):
        made = pipeline(random, ["a", "a", "a", "b", "b", "e"])
        for neighbour in neighbours(random, made):
            found = signed(neighbour)
            if found is not None:
                answers[found[0]].append((bag(oracle, neighbour, found[1]), duck_query(neighbour)))
    for same in answers.values():
        for other, text in same[1:]:
            assert other == same[0][0], f"seed {seed}\n{same[0][1]}\n--- is not\n{text}"
    assert any(len(same) > 1 for same in answers.values())
    assert len(answers) > 4
