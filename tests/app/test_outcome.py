"""What came of a run, in words and as JSON."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cli.made_up import network, plan, status
from penstock.app.outcome import (
    Outcome,
    as_record,
    check_read,
    destinations,
    labelled,
    sentence,
)
from penstock.errors import InputError
from penstock.model.network import Network, Query
from penstock.model.operators import Input, SqlWrite
from penstock.model.sources import ConsoleSink, Database, FileSink

MADE = network(("heavy", ConsoleSink()), ("load", FileSink(Path("/out"), "csv")), ("inner", None))
OUTCOME = Outcome(
    plan(MADE),
    "finished",
    72.4,
    (status("heavy", 100_800, 3_410, finished=True), status("load", 100_800, 8, finished=True)),
    {"readings": {"malformed": 0, "late": 0}},
)


def test_finished() -> None:
    assert sentence(OUTCOME) == (
        "finished after 1 min 12 s: 100,800 rows in, 3,418 out, 0 set aside"
    )


def test_an_input_of_which_nothing_could_be_read_is_no_result() -> None:
    check_read(OUTCOME)
    told = {"readings": "3 malformed (such as kwh: 'x' is no double)"}
    unread = replace(OUTCOME, unread=told, dead_letters=Path("/state/dead_letters"))
    assert sentence(unread) == "nothing could be read of readings"
    assert not as_record(unread)["finished"]
    assert as_record(unread)["unread"] == ["readings"]
    with pytest.raises(InputError) as error:
        check_read(unread)
    assert str(error.value) == (
        "nothing could be read of readings: readings: 3 malformed (such as kwh: 'x' is no double). "
        "The rows are in /state/dead_letters. Correct the schema, the format or the files, "
        "and run it with --fresh."
    )


def test_stopped() -> None:
    for ending in ("asked", "time"):
        assert sentence(replace(OUTCOME, ending=ending)) == (
            "stopped cleanly after 1 min 12 s: 100,800 rows in, 3,418 out, 0 set aside; "
            "start again with the same command to go on where it stopped"
        )


def test_finished_before() -> None:
    assert sentence(replace(OUTCOME, ending="finished before")) == (
        "ami has already finished: all its inputs have ended and all results are out; "
        "start over with --fresh"
    )


def test_stopped_before_spark_was_there() -> None:
    outcome = replace(OUTCOME, ending="not begun")
    assert sentence(outcome) == "stopped before anything ran"
    assert not as_record(outcome)["finished"]


def test_destinations_are_those_beside_the_terminal() -> None:
    assert destinations(OUTCOME) == [("load", "to csv files in /out")]


def test_a_table_is_a_destination_and_shows_no_password() -> None:
    made = network(("load", None))
    result = Input("load", made.shapes["load"])
    write = SqlWrite("load_write", result, Database("postgresql://ann:secret@host/db"), "loads")
    written = Network(made.streams, (*made.operators, write), (Query("load", "load"),))
    outcome = replace(OUTCOME, plan=plan(written))
    assert destinations(outcome) == [("load", "to table loads in postgresql://ann@host/db")]


def test_as_json() -> None:
    record = json.loads(json.dumps(as_record(OUTCOME)))
    assert record == {
        "deployment": "ami",
        "seconds": 72.4,
        "finished": True,
        "ending": "finished",
        "rows_in": 100_800,
        "rows_out": 3_418,
        "queries": [
            {
                "name": "heavy",
                "rows_in": 100_800,
                "rows_out": 3_410,
                "batches": 1,
                "batch_ms_p50": 120.0,
                "state_rows": 14_210,
            },
            {
                "name": "load",
                "rows_in": 100_800,
                "rows_out": 8,
                "batches": 1,
                "batch_ms_p50": 120.0,
                "state_rows": 14_210,
            },
            {
                "name": "inner",
                "rows_in": None,
                "rows_out": None,
                "batches": None,
                "batch_ms_p50": None,
                "state_rows": None,
            },
        ],
        "set_aside": {"readings": {"malformed": 0, "late": 0}},
        "unread": [],
    }
    assert not as_record(replace(OUTCOME, ending="time"))["finished"]


def test_fragments_are_shown_under_the_names_of_their_queries() -> None:
    made = network(("heavy", ConsoleSink()))
    twice = Network(
        made.streams, made.operators, (*made.queries, Query("again", "heavy", ConsoleSink()))
    )
    shown = labelled(plan(twice).fragments, (status("heavy"),))
    assert [one.fragment for one in shown] == ["heavy, again"]
