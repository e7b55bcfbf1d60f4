"""Where rows come from and go to: what is refused, and in which words."""

from pathlib import Path

import pytest

from model.samples import READINGS, S, shape_of
from penstock.errors import InputError
from penstock.model.schema import Schema, Shape
from penstock.model.sources import (
    FILE_FORMATS,
    CsvLayout,
    Database,
    GeneratorSource,
    KafkaSource,
    ReplaySource,
    Stream,
    Table,
    checked_format,
)

SOURCE = KafkaSource("localhost:9092", "readings")
TIMED, UNTIMED = shape_of(READINGS, "ts"), shape_of(READINGS)


@pytest.mark.parametrize("format", FILE_FORMATS)
def test_formats_are_known_in_any_case(format: str) -> None:
    assert checked_format(format) == checked_format(format.upper()) == format


def test_json_lines_are_json() -> None:
    assert checked_format("jsonl") == "json"


@pytest.mark.parametrize(("written", "hint"), [("parket", " Did you mean parquet?"), ("xml", "")])
def test_an_unknown_format_lists_the_formats(written: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_format(written)
    formats = "The formats are csv, json, parquet, text."
    assert str(caught.value) == f"no file format {written}. {formats}{hint}"


@pytest.mark.parametrize("delimiter", ["", ";;"])
def test_a_delimiter_is_one_character(delimiter: str) -> None:
    with pytest.raises(InputError) as caught:
        CsvLayout(delimiter)
    what = f"the delimiter {delimiter!r} has {len(delimiter)} characters"
    assert str(caught.value) == f"{what}. Give one character, for example ',' or '\\t'."


@pytest.mark.parametrize("speedup", [0, -1.5])
def test_a_replay_goes_forwards(speedup: float) -> None:
    with pytest.raises(InputError) as caught:
        ReplaySource(Path("a.csv"), "csv", speedup=speedup)
    what = f"a replay {speedup} times as fast as recorded"
    assert str(caught.value) == f"{what}. Give a speedup above zero, or max."


@pytest.mark.parametrize(
    ("name", "shape", "lateness_us", "idle_us", "message"),
    [
        (
            "a b",
            TIMED,
            0,
            None,
            "'a b' cannot name a stream. "
            "Use letters, digits and underscores, starting with a letter.",
        ),
        (
            "a",
            TIMED,
            -1,
            None,
            "stream a has a lateness below zero. "
            "Give a duration of zero or more, for example 2min.",
        ),
        (
            "a",
            UNTIMED,
            0,
            None,
            "stream a has a lateness but no event time. Name the timestamp column with event_time.",
        ),
        (
            "a",
            TIMED,
            0,
            0,
            "stream a has an idle timeout of zero or less. "
            "Give a duration above zero, for example 30 s, or none.",
        ),
    ],
)
def test_impossible_streams_are_refused(
    name: str, shape: Shape, lateness_us: int, idle_us: int | None, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        Stream(name, SOURCE, shape, lateness_us, idle_us)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("shape", "lateness_us"),
    [(TIMED, None), (shape_of(READINGS, "ts", watermarked=False), 0)],
)
def test_a_stream_is_watermarked_just_when_it_has_a_lateness(
    shape: Shape, lateness_us: int | None
) -> None:
    with pytest.raises(ValueError, match="stream a is watermarked just when it has a lateness"):
        Stream("a", SOURCE, shape, lateness_us)


def test_streams_with_and_without_time() -> None:
    Stream("a", SOURCE, TIMED, 0, S)
    Stream("a", SOURCE, UNTIMED)
    Stream("a", SOURCE, shape_of(READINGS, "ts", watermarked=False))


def test_options_of_a_generator_cannot_be_changed() -> None:
    options: dict[str, object] = {"homes": 10}
    source = GeneratorSource("meters", options)
    options["homes"] = 20
    assert source.options == {"homes": 10}
    with pytest.raises(TypeError):
        source.options["homes"] = 30  # type: ignore[index]


def test_equal_generators_have_equal_hashes() -> None:
    one = GeneratorSource("meters", {"a": 1, "b": [1, 2]})
    other = GeneratorSource("meters", {"b": [1, 2], "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one != GeneratorSource("meters", {"a": 2, "b": [1, 2]})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///ami.db", "sqlite:///ami.db"),
        ("postgresql://me:secret@host/db", "postgresql://me@host/db"),
        ("postgresql://me:se:cr@et@host/db", "postgresql://me@host/db"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://host/db?user=me&password=secret", "postgresql://host/db"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert Database(url).shown == shown


def test_a_database_is_a_url() -> None:
    with pytest.raises(InputError) as caught:
        Database("ami.db")
    hint = "Write for example sqlite:///file.db or postgresql+psycopg://user@host/name."
    assert str(caught.value) == f"'ami.db' is not a database URL. {hint}"


@pytest.mark.parametrize(
    ("path", "database"), [(None, None), (Path("a.csv"), Database("sqlite:///a"))]
)
def test_a_table_is_in_a_file_or_in_a_database(
    path: Path | None, database: Database | None
) -> None:
    with pytest.raises(InputError) as caught:
        Table("homes", Schema.parse("home string"), path=path, database=database)
    hint = "Give either file: PATH or database: URL."
    assert str(caught.value) == f"table homes needs a file or a database. {hint}"


def test_a_table_is_stored_under_its_name_or_another() -> None:
    schema, database = Schema.parse("home string"), Database("sqlite:///a")
    assert Table("homes", schema, database=database).stored_name == "homes"
    assert Table("homes", schema, database=database, table="h").stored_name == "h"
    with pytest.raises(InputError, match=r"^'h; drop' cannot name a database table"):
        Table("homes", schema, database=database, table="h; drop")


@pytest.mark.parametrize(
    ("shape", "ahead_us", "message"),
    [
        (
            TIMED,
            -1,
            "stream a has a bound ahead below zero. "
            "Give a duration of zero or more, for example 1d.",
        ),
        (
            UNTIMED,
            0,
            "stream a has a bound ahead but no event time. "
            "Name the timestamp column with event_time.",
        ),
    ],
)
def test_impossible_bounds_ahead_are_refused(shape: Shape, ahead_us: int, message: str) -> None:
    lateness_us = 0 if shape.times else None
    with pytest.raises(InputError) as caught:
        Stream("a", SOURCE, shape, lateness_us, ahead_us=ahead_us)
    assert str(caught.value) == message
