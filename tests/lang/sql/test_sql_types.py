"""Types in SQL: no spelling that the parser understands changes a type without a word."""

from __future__ import annotations

import pytest
from sqlglot.parsers.spark import SparkParser

from penstock.errors import InputError
from penstock.lang.sql import parse_expression
from penstock.lang.sql.syntax import DIALECT
from penstock.model.expressions import type_of
from penstock.model.schema import Schema
from penstock.model.types import DataType

ROW = Schema.parse("s string")
FORMS = ("CAST(s AS {})", "TRY_CAST(s AS {})", "s::{}")

UNDERSTOOD = {
    **dict.fromkeys(("bool", "boolean"), DataType.BOOLEAN),
    **dict.fromkeys(("int", "integer", "int4"), DataType.INT),
    **dict.fromkeys(("bigint", "long"), DataType.BIGINT),
    **dict.fromkeys(("double", "double precision", "float8"), DataType.DOUBLE),
    **dict.fromkeys(("string", "text", "varchar"), DataType.STRING),
    **dict.fromkeys(("timestamp", "timestamp_ltz", "timestamptz", "datetime"), DataType.TIMESTAMP),
    "timestamp with time zone": DataType.TIMESTAMP,
    "date": DataType.DATE,
    **dict.fromkeys(("binary", "varbinary", "blob", "bytea"), DataType.BINARY),
}


def type_names() -> list[str]:
    """Every keyword that the parser takes for a type, alone and with an argument, and more."""
    words = DIALECT.tokenizer_class.KEYWORDS
    known = [word.lower() for word, token in words.items() if token in SparkParser.TYPE_TOKENS]
    more = ["dec(4, 2)", "timestamp with time zone", "timestamp without time zone", "array<int>"]
    more += ["int[]", "struct<a: int>", "map<string, int>", "interval day to second"]
    return [*known, *(f"{word}(3)" for word in known), "numeric(10, 2)", *more, *UNDERSTOOD]


@pytest.mark.parametrize("form", FORMS)
def test_a_cast_gives_the_type_that_is_written_or_is_refused(form: str) -> None:
    wrong = {}
    for name in type_names():
        try:
            given = type_of(parse_expression(form.format(name), ROW), ROW)
        except InputError:
            given = None
        if given is not UNDERSTOOD.get(name):
            wrong[name] = given
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CAST(s AS decimal(10,2))", "decimal(10,2)"),
        ("CAST(s AS numeric)", "numeric"),
        ("CAST(s AS TinyInt)", "tinyint"),
        ("s::int2", "int2"),
        ("TRY_CAST(s AS real)", "real"),
        ("CAST(s AS byte)", "byte"),
        ("CAST(s AS varchar(5))", "varchar(5)"),
        ("CAST(s AS timestamp(3))", "timestamp(3)"),
        ("CAST(s AS timestamp_ntz)", "timestamp_ntz"),
        ("CAST(s AS time)", "time"),
        ("CAST(s AS interval)", "interval"),
        ("CAST(s AS uuid)", "uuid"),
        ("CAST(s AS json)", "json"),
        ("CAST(s AS array<int>)", "array<int>"),
        ("10Y", "tinyint"),
        ("10S", "smallint"),
        ("1.5F", "float"),
        ("decimal(10, 2) '1.5'", "decimal(10, 2)"),
    ],
)
def test_refusals_name_the_type_as_it_was_written(text: str, name: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_expression(text, ROW)
    assert caught.value.what == f"the type {name} is not supported"
    assert caught.value.hint


def test_suffixes_of_the_types_there_are_are_understood() -> None:
    assert type_of(parse_expression("10L", ROW), ROW) is DataType.BIGINT
    assert type_of(parse_expression("1.5D", ROW), ROW) is DataType.DOUBLE


def test_a_number_beyond_doubles_is_refused() -> None:
    with pytest.raises(InputError, match="1e400 is too large for a double"):
        parse_expression("1e400", ROW)
