"""What a reader is told: as text and back."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.model.schema import Schema
from penstock.spark.sources.spec import ReaderSpec

pytestmark = pytest.mark.core

SPEC = ReaderSpec(
    stream="readings",
    schema="ts timestamp, home string, kwh double",
    columns=("ts", "kwh"),
    event_time="ts",
    origin={"kind": "feed", "generator": "meters", "options": {"homes": 3, "areas": ["a", "b"]}},
    lateness_us=5,
    idle_timeout_us=None,
    max_rows=7,
    parallelism=3,
    reader="heavy",
    dead_letters="/state/dead_letters/readings",
    source_options={"x": 1},
)


def test_a_spec_reads_back() -> None:
    assert ReaderSpec.from_json(SPEC.to_json()) == SPEC


def test_defaults_read_back() -> None:
    small = ReaderSpec("s", "a int", ("a",), None, {"kind": "channel"})
    assert ReaderSpec.from_json(small.to_json()) == small


def test_only_the_columns_needed_are_read() -> None:
    assert SPEC.read_schema == Schema.parse("ts timestamp, kwh double")


def test_columns_must_exist() -> None:
    wrong = ReaderSpec("s", "a int", ("b",), None, {})
    with pytest.raises(InputError, match=r"^no column b\. It has a\.$"):
        _ = wrong.read_schema
