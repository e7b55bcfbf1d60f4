"""Running at another speed."""

from pathlib import Path

import pytest

from cli.made_up import network
from penstock.app.pace import Speed, at_speed
from penstock.errors import InputError, UsageError
from penstock.model.sources import (
    ConsoleSink,
    DirectorySource,
    GeneratorSource,
    KafkaSource,
    ReplaySource,
)

QUERY = ("heavy", ConsoleSink())


def test_a_generator_is_asked_for_everything_at_once() -> None:
    paced = at_speed(network(QUERY), Speed.parse("max"))
    assert paced.streams[0].source == GeneratorSource("meters", {"days": 1, "speedup": "max"})


@pytest.mark.parametrize(("written", "speedup"), [("600", 600), ("0.5", 0.5), ("1e3", 1000)])
def test_a_number_is_seconds_in_a_second(written: str, speedup: float) -> None:
    source = at_speed(network(QUERY), Speed.parse(written)).streams[0].source
    assert isinstance(source, GeneratorSource)
    assert source.options["speedup"] == speedup


def test_the_speed_of_the_file_is_the_same_plan() -> None:
    assert repr(at_speed(network(QUERY), Speed.parse("600"))) == repr(network(QUERY))


def test_a_replay_gets_the_speed_too() -> None:
    source = ReplaySource(Path("a.csv"), "csv", speedup=60)
    replayed = network(QUERY, source=source)
    assert at_speed(replayed, Speed(None)).streams[0].source == ReplaySource(Path("a.csv"), "csv")
    assert at_speed(replayed, Speed(5)).streams[0].source == ReplaySource(
        Path("a.csv"), "csv", speedup=5
    )


@pytest.mark.parametrize("written", ["fast", "0", "-3", "inf", "nan", ""])
def test_what_is_not_a_speed(written: str) -> None:
    with pytest.raises(UsageError) as raised:
        Speed.parse(written)
    assert str(raised.value) == (
        f"--speed {written} is not a speed. "
        "Give a number above zero, for example --speed 600, or --speed max."
    )


@pytest.mark.parametrize(
    "source", [KafkaSource("host:9092", "readings"), DirectorySource(Path("in"), "csv")]
)
def test_nothing_to_pace(source: KafkaSource | DirectorySource) -> None:
    with pytest.raises(UsageError) as raised:
        at_speed(network(QUERY, source=source), Speed(None))
    assert str(raised.value) == (
        "--speed max changes nothing: no stream is generated or replayed (readings). Leave it out."
    )


def test_an_endless_generator_cannot_be_asked_for_everything() -> None:
    endless = network(QUERY, source=GeneratorSource("meters", {"speedup": 600}))
    with pytest.raises(InputError) as raised:
        at_speed(endless, Speed(None))
    assert str(raised.value) == (
        "stream readings: generator meters: this feed would never end and never wait. "
        "Limit its length or give a speedup."
    )
