"""Rows that could not be used: how many, why, and when that is told."""

from __future__ import annotations

import pyarrow as pa
import pytest

from control.controller.facts import refused
from control.toys import TroubledCatalog
from penstock.channels.dead_letters import DeadLetters
from penstock.channels.writer import Writer
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.feeds.pieces import Reject


@pytest.fixture
def letters(home: Home) -> DeadLetters:
    return DeadLetters(home.state / "dead_letters" / "readings")


def test_how_much_and_why(ami: Controller, letters: DeadLetters) -> None:
    assert ami.notices.set_aside() == []
    letters.put_rejects("ingest-1", [Reject("a.csv", 2, "kwh: 'x' is no double", "h,x")] * 2)
    letters.put_late("ingest-1", pa.table({"n": [1, 2, 3]}))
    (told,) = ami.notices.set_aside()
    assert told.rows == {"malformed": 2, "late": 3}
    assert told.text == "2 malformed (such as kwh: 'x' is no double), 3 late"
    assert told.folder == str(letters.folder)
    assert not told.nothing_read
    assert [letter.kind for letter in ami.notices.dead_letters("readings", 4)] == [
        "late",
        "late",
        "malformed",
        "malformed",
    ]


def test_only_of_streams_from_outside(ami: Controller) -> None:
    assert refused(lambda: ami.notices.dead_letters("peaks", 1)) == (
        "peaks is a result; rows are set aside where they come in from outside. There are readings."
    )
    assert refused(lambda: ami.notices.dead_letters("reading", 1)) == (
        "no stream reading from outside. There are readings. Did you mean readings?"
    )


def test_an_input_of_which_nothing_could_be_read(ami: Controller, letters: DeadLetters) -> None:
    letters.put_rejects("ingest-1", [Reject("a.csv", 0, "a.csv is damaged", "")])
    writer = Writer(ami.channel("readings"), 1)
    writer.commit(0, [], None, ended=True, writer_state={"admitted": 0})
    (told,) = ami.notices.set_aside()
    assert told.nothing_read
    assert told.text == ("nothing could be read: 1 file skipped (such as a.csv is damaged)")


def test_that_it_has_ended_so_is_told_as_well(
    ami: Controller, catalog: TroubledCatalog, letters: DeadLetters
) -> None:
    letters.put_rejects("ingest-1", [Reject("a.csv", 2, "n: 'x' is no int", "x")])
    ami.notices.note_set_aside(100.0)
    writer = Writer(ami.channel("readings"), 1)
    writer.commit(0, [], None, ended=True, writer_state={"admitted": 0})
    for at_s in (110.0, 120.0):
        ami.notices.note_set_aside(at_s)
    malformed = "1 malformed (such as n: 'x' is no int)"
    told = [event.text for event in catalog.events() if event.kind == "aside"]
    assert told == [malformed, f"nothing could be read: {malformed}"]


def test_it_is_told_at_first_and_when_it_has_doubled(
    ami: Controller, catalog: TroubledCatalog, letters: DeadLetters, home: Home
) -> None:
    def told() -> list[str]:
        return [event.text for event in catalog.events() if event.kind == "aside"]

    ami.notices.note_set_aside(100.0)
    assert told() == []
    letters.put_late("ingest-1", pa.table({"n": [1, 2]}))
    ami.notices.note_set_aside(105.0)
    assert told() == [], "it looks every ten seconds"
    ami.notices.note_set_aside(110.0)
    letters.put_late("ingest-2", pa.table({"n": [3]}))
    ami.notices.note_set_aside(120.0)
    assert told() == ["2 late"]
    letters.put_late("ingest-3", pa.table({"n": [4]}))
    # Another controller knows what was told before.
    Controller(home, catalog).notices.note_set_aside(130.0)
    assert told() == ["2 late", "4 late"]
