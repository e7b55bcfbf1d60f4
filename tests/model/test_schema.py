"""Columns, names, and what is known about a stream's times."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.samples import READINGS, S
from penstock.errors import InputError
from penstock.model.schema import Field, Schema, Shape, TimeColumn, checked_name, leading
from penstock.model.types import STORABLE, DataType


@pytest.mark.parametrize("name", ["a", "A1", "_a", "snake_case", "a__b", "x" * 100])
def test_names_of_letters_digits_and_underscores_are_taken(name: str) -> None:
    assert checked_name(name, "stream") == name


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "a.b", "../a", "ä", "a\n", "a;drop"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_name(name, "stream")
    hint = "Use letters, digits and underscores, starting with a letter."
    assert str(caught.value) == f"{name!r} cannot name a stream. {hint}"


@pytest.mark.parametrize(("name", "instead"), [("__beat", "beat"), ("__", "column")])
def test_two_leading_underscores_are_ours(name: str, instead: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_name(name, "column")
    what = f"{name!r} cannot name a column: two leading underscores are reserved"
    assert str(caught.value) == f"{what}. Call it {instead}."


@pytest.mark.parametrize(
    ("type", "hint"),
    [
        (
            DataType.INTERVAL,
            "The time between two is a number as unix_micros(one) - unix_micros(other).",
        ),
        (DataType.NULL, "Cast it, for example CAST(… AS string)."),
    ],
)
def test_a_column_needs_a_type_that_can_be_stored(type: DataType, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        Field("gap", type)
    assert str(caught.value) == f"column gap cannot have the type {type}. {hint}"


def test_columns_are_found_in_any_case() -> None:
    schema = Schema.parse("ts timestamp, Home string")
    assert schema["HOME"] == Field("Home", DataType.STRING)
    assert "home" in schema
    assert schema.find("kwh") is None
    assert schema.names == ("ts", "Home")
    assert len(schema) == 2


def test_a_missing_column_lists_those_there_are() -> None:
    with pytest.raises(InputError) as caught:
        Schema.parse("ts timestamp, home string")["hom"]
    assert str(caught.value) == "no column hom. It has ts, home. Did you mean home?"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("a int, A double", "two columns are called A. Rename one with AS."),
        ("a", "'a' is not a column. Write its name and its type, for example kwh double."),
        ("a int,", "'' is not a column. Write its name and its type, for example kwh double."),
        ("", "'' is not a column. Write its name and its type, for example kwh double."),
    ],
)
def test_impossible_schemas_are_refused(columns: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Schema.parse(columns)
    assert str(caught.value) == message


def test_a_schema_has_columns() -> None:
    with pytest.raises(InputError) as caught:
        Schema(())
    assert str(caught.value) == "a schema without columns. Name at least one column."


def test_commas_inside_a_type_do_not_separate_columns() -> None:
    with pytest.raises(InputError, match=re.escape("the type decimal(10, 2) is not supported")):
        Schema.parse("a decimal(10, 2), b int")


def test_names_in_quotes() -> None:
    assert str(Schema.parse("`order` string, `from` int")) == "order string, from int"


@pytest.mark.parametrize(
    ("text", "name", "instead"),
    [
        ("`Order ID` string", "Order ID", "order_id"),
        ("`a, b` string, c int", "a, b", "a_b"),
        ("@timestamp timestamp", "@timestamp", "timestamp"),
        ("user.name string", "user.name", "user_name"),
        ("`7` int", "7", "column_7"),
    ],
)
def test_other_names_are_refused_with_how_to_rename(text: str, name: str, instead: str) -> None:
    with pytest.raises(InputError) as caught:
        Schema.parse(text)
    assert str(caught.value) == (
        f"{name!r} cannot name a column. Use letters, digits and underscores, starting with a "
        f"letter, and say what is meant: columns: {{{name!r}: {instead}}}."
    )


names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
schemas = st.lists(
    st.tuples(names, st.sampled_from(STORABLE)), min_size=1, unique_by=lambda tuple: tuple[0]
).map(Schema.of)


@settings(database=None, deadline=None)
@given(schema=schemas)
def test_a_printed_schema_parses_back(schema: Schema) -> None:
    assert Schema.parse(str(schema)) == schema


def test_the_event_time_is_the_first_time_column() -> None:
    schema = Schema.parse("a timestamp, b timestamp")
    shape = Shape(schema, (TimeColumn("b"), TimeColumn("a", S)))
    assert shape.event_time == "b"
    assert Shape(schema).event_time is None


def test_time_columns_are_spelled_as_in_the_schema() -> None:
    schema = Schema.parse(READINGS)
    assert Shape(schema, (TimeColumn("TS"),)) == Shape.timed(schema, "ts")
    assert Shape.timed(schema, "Ts").event_time == "ts"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            "kwh",
            "event time kwh is a double, not a timestamp. "
            "Declare the column as timestamp, or cast it in a query.",
        ),
        ("when", "no column when. It has ts, home, kwh, meter."),
    ],
)
def test_the_event_time_is_a_timestamp_column(column: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Shape.timed(Schema.parse(READINGS), column)
    assert str(caught.value) == message


def test_a_watermark_is_counted_in_the_event_time() -> None:
    with pytest.raises(ValueError, match="a watermark is counted in the first time column"):
        Shape(Schema.parse(READINGS), (TimeColumn("ts", S),))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (Shape(Schema.parse("a int")), "a int"),
        (Shape.timed(Schema.parse("t timestamp"), "t"), "t timestamp; event time t"),
        (
            Shape.timed(Schema.parse("t timestamp"), "t", watermarked=False),
            "t timestamp; event time t (no lateness given)",
        ),
    ],
)
def test_shapes_as_people_read_them(shape: Shape, text: str) -> None:
    assert str(shape) == text


def test_leading_of_nothing_is_nothing() -> None:
    assert leading([]) == ((), 0)


@settings(database=None, deadline=None)
@given(behind=st.lists(st.integers(0, 100), min_size=1))
def test_leading_counts_from_the_least_delayed_column(behind: list[int]) -> None:
    times = [TimeColumn(f"t{at}", one) for at, one in enumerate(behind)]
    ordered, delay_us = leading(times)
    assert delay_us == min(behind)
    assert ordered[0].behind_us == 0
    # Nothing is promised that was not promised before.
    assert {TimeColumn(one.column, one.behind_us + delay_us) for one in ordered} == set(times)


def test_names_are_not_too_long_for_files_called_after_them() -> None:
    assert checked_name("x" * 100, "query")
    with pytest.raises(InputError) as error:
        checked_name("x" * 101, "query")
    assert str(error.value) == (
        f"{'x' * 20}… cannot name a query: it has 101 characters. "
        "Use at most 100; files are called after it."
    )
    assert checked_name("x" * 200, "operator")
    with pytest.raises(InputError, match=r"it has 201 characters\. Use at most 200"):
        checked_name("x" * 201, "fragment")
