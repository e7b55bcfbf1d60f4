"""What submissions come to: units, the streams they offer, and who reads whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from control.made_up import AMI, submission
from penstock.control.records import Submission
from penstock.control.system import System, assemble, extend
from penstock.errors import InputError
from penstock.model.sources import DirectorySource, RunningSource

KAFKA = """
streams:
  readings:
    source: {kafka: "127.0.0.1:9092", topic: ami}
    schema: ts timestamp, home string, kwh double
    event_time: ts
    lateness: 2min
queries:
  peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3
"""
PER_HOME = (
    "SELECT home, window.start AS begun, count(*) AS n FROM peaks "
    "GROUP BY home, window(ts, '5 minutes')"
)


def made(*texts: str) -> System:
    """The system of submissions called ami, s2, s3 and so on."""
    names = ["ami", *(f"s{k}" for k in range(2, len(texts) + 1))]
    return assemble(
        submission(name, text, number)
        for number, (name, text) in enumerate(zip(names, texts, strict=False), 1)
    )


def summary(system: System) -> dict[str, str]:
    """Every unit with its submission and what it reads."""
    return {
        unit.name: f"{unit.kind} of {unit.submission} < {' '.join(unit.reads)}".rstrip(" <")
        for unit in system.units.values()
    }


def refused(*texts: str) -> str:
    with pytest.raises(InputError) as error:
        made(*texts)
    return str(error.value)


class TestUnits:
    def test_nothing_comes_to_nothing(self) -> None:
        assert assemble([]) == System()

    def test_a_deployment_is_its_intakes_and_fragments(self) -> None:
        system = made(AMI)
        assert summary(system) == {
            "readings": "intake of 1",
            "peaks": "fragment of 1 < readings",
        }
        assert system.queries == {"peaks": 1}
        assert system.deployments[1].name == "ami"

    def test_a_stream_that_is_written_in_the_same_way_is_one(self) -> None:
        lows = AMI.replace("peaks", "lows").replace("kwh > 3", "kwh < 1")
        system = made(AMI, lows, lows.replace("lows", "others"))
        assert summary(system)["lows"] == "fragment of 2 < readings"
        assert summary(system)["others"] == "fragment of 3 < readings"
        assert [name for name, unit in system.units.items() if unit.kind == "intake"] == [
            "readings"
        ]
        assert system.readers(1) == ("lows", "others")

    def test_a_query_of_one_deployment_may_read_another(self) -> None:
        text = "queries:\n  many: SELECT home FROM peaks WHERE kwh > 5\n"
        assert summary(made(AMI, text))["many"] == "fragment of 2 < peaks"

    def test_queries_read_streams_and_results_of_earlier_ones(self) -> None:
        low = "SELECT home FROM readings WHERE kwh < 1"
        system = made(AMI, PER_HOME, low, "SELECT n FROM s2 WHERE n > 2")
        assert summary(system) == {
            "readings": "intake of 1",
            "peaks": "fragment of 1 < readings",
            "s2": "fragment of 2 < peaks",
            "s3": "fragment of 3 < readings",
            "s4": "fragment of 4 < s2",
        }
        assert system.queries == {"peaks": 1, "s2": 2, "s3": 3, "s4": 4}

    def test_every_result_goes_into_a_channel(self) -> None:
        """Otherwise a later query could not read it, and nobody could fetch it."""
        fragments = [unit.fragment for unit in made(AMI, PER_HOME).units.values()]
        assert all(fragment.is_read for fragment in fragments if fragment is not None)

    def test_a_stream_nobody_reads_is_known_but_not_brought_in(self) -> None:
        text = AMI.replace("queries:", "  idle: {source: {generate: meters, days: 1}}\nqueries:")
        system = made(text)
        unread = {unit.name: unit.is_unread for unit in system.units.values()}
        assert unread == {"readings": False, "idle": True, "peaks": False}
        assert list(system.streams) == ["readings", "idle", "peaks"]

    def test_a_query_over_a_stream_of_its_own_file(self) -> None:
        streams = AMI[: AMI.index("queries:")]
        system = made(streams, "SELECT home FROM readings")
        assert summary(system) == {"readings": "intake of 1", "s2": "fragment of 2 < readings"}
        assert system.readers(1) == ("s2",)

    def test_queries_on_different_nodes_are_different_fragments(self) -> None:
        text = AMI.replace(
            "peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3",
            "peaks: {sql: 'SELECT ts, home FROM readings', on: a, to: none}\n"
            "  tops: {sql: SELECT home FROM peaks, on: b}",
        )
        units = made(text).units.values()
        assert {unit.name: (unit.reads, unit.on) for unit in units if unit.fragment} == {
            "peaks": (("readings",), "a"),
            "tops": (("peaks",), "b"),
        }

    def test_a_topic_is_brought_in_once_for_all_who_read_it(self) -> None:
        other = KAFKA.replace("peaks:", "lows:")
        system = made(KAFKA, other, "SELECT home FROM readings")
        assert summary(system) == {
            "readings": "intake of 1",
            "peaks": "fragment of 1 < readings",
            "lows": "fragment of 2 < readings",
            "s3": "fragment of 3 < readings",
        }
        assert set(system.streams) == {"readings", "peaks", "lows", "s3"}
        assert system.readers(1) == ("lows", "s3")

    def test_rows_of_a_running_topic_have_no_order(self) -> None:
        text = "streams:\n  retimed: {from: readings, event_time: ts, lateness: 1s}\n"
        text += "queries:\n  q: SELECT ts FROM retimed\n"
        assert "reads readings, a running result: its rows have no one order" in refused(
            KAFKA, text
        )

    def test_where_a_query_is_written_to_run(self) -> None:
        text = AMI.replace(
            "peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3",
            "peaks: {sql: SELECT ts FROM readings, on: b}\n  lows: SELECT home FROM readings",
        )
        system = made(text)
        on = {unit.name: unit.on for unit in system.units.values()}
        assert on == {"readings": None, "peaks": "b", "lows": None}

    def test_relative_paths_start_at_the_folder_of_the_submission(self) -> None:
        text = (
            "streams:\n  lines: {source: {directory: in, format: csv}, schema: a int}\n"
            "queries:\n  q: SELECT a FROM lines\n"
        )
        stream = assemble([submission(text=text, folder="/data/ami")]).units["lines"].stream
        assert stream is not None
        assert isinstance(stream.source, DirectorySource)
        assert stream.source.path == Path("/data/ami/in")

    def test_a_query_may_be_told_how_old_results_may_be(self) -> None:
        asked = replace(submission("q", "SELECT home FROM peaks", 2), max_latency_us=3_000_000)
        system = assemble([submission(), asked])
        assert system.deployments[2].network.query("q").max_latency_us == 3_000_000

    def test_so_may_the_queries_of_a_file_that_say_nothing_themselves(self) -> None:
        text = "queries:\n  q: SELECT home FROM peaks\n"
        text += "  r: {sql: SELECT home FROM peaks, max_latency: 1s}\n"
        asked = replace(submission("f", text, 2), kind="yaml", max_latency_us=3_000_000)
        network = assemble([submission(), asked]).deployments[2].network
        told = [network.query(name).max_latency_us for name in ("q", "r")]
        assert told == [3_000_000, 1_000_000]


class TestStreams:
    def test_everything_in_a_channel_is_offered(self) -> None:
        system = made(AMI, PER_HOME)
        assert list(system.streams) == ["readings", "peaks", "s2"]
        assert all(stream.source == RunningSource() for stream in system.streams.values())

    def test_with_its_columns_and_its_time(self) -> None:
        peaks = made(AMI).streams["peaks"]
        assert str(peaks.shape.schema) == "ts timestamp, home string, kwh double"
        assert peaks.shape.event_time == "ts"
        assert peaks.lateness_us == 0
        text = AMI.replace(", lateness: 2min", "").replace("ts, home", "home")
        assert made(text).streams["peaks"].lateness_us is None

    def test_readers_are_those_of_others(self) -> None:
        system = made(AMI, "SELECT home FROM peaks", "SELECT home FROM readings")
        assert system.readers(1) == ("s2", "s3")
        assert system.readers(2) == ()


class TestRefusals:
    def test_a_name_that_is_taken(self) -> None:
        taken = "is called like {0} of the running system. Rename one of them."
        assert refused(AMI, AMI.replace("days: 1", "days: 2")) == (
            "s2.yaml, line 3:\n"
            "      readings: {source: {generate: meters, days: 2}, lateness: 2min}\n"
            "      ^^^^^^^^\n"
            f"stream readings {taken.format('readings')}"
        )
        query = "queries:\n  peaks: SELECT home FROM readings\n"
        assert refused(AMI, query).endswith(f"query peaks {taken.format('peaks')}")
        # Upper and lower case make no difference.
        assert refused(AMI, query.replace("peaks", "PEAKS")).endswith(
            f"query PEAKS {taken.format('peaks')}"
        )

    def test_a_query_called_like_a_stream(self) -> None:
        asked = submission("readings", "SELECT home FROM peaks", 2)
        with pytest.raises(InputError) as error:
            extend(made(AMI), asked)
        assert str(error.value) == (
            "query readings is called like readings of the running system. Rename one of them."
        )

    def test_a_name_that_is_none(self) -> None:
        with pytest.raises(InputError) as error:
            extend(made(AMI), submission("../x", "SELECT home FROM peaks", 2))
        assert str(error.value) == (
            "'../x' cannot name a query. "
            "Use letters, digits and underscores, starting with a letter."
        )

    def test_an_unknown_stream(self) -> None:
        assert refused(AMI, "SELECT home FROM peeks") == (
            "s2.sql, query s2, line 1:\n"
            "    SELECT home FROM peeks\n"
            "                     ^^^^^\n"
            "no stream or table peeks; there are readings, peaks. Did you mean peaks?"
        )

    def test_an_unknown_column(self) -> None:
        assert "no column hom" in refused(AMI, "SELECT hom FROM peaks")

    def test_two_queries_in_one(self) -> None:
        assert "2 queries in one text" in refused(AMI, "SELECT home FROM peaks; DROP TABLE peaks")

    def test_a_query_before_there_is_anything_to_read(self) -> None:
        asked = Submission(1, "q", "sql", "SELECT home FROM peaks", ".")
        with pytest.raises(InputError, match="no stream or table peaks; there are none"):
            assemble([asked])

    def test_what_is_refused_changes_nothing(self) -> None:
        system = made(AMI)
        before = dict(system.units)
        with pytest.raises(InputError):
            extend(system, submission("q", "SELECT hom FROM peaks", 2))
        assert system.units == before
