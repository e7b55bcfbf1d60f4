"""The error tree: how a message is put together and where it points."""

import pytest

from penstock.errors import (
    InputError,
    PenstockError,
    Place,
    RunError,
    UnreachableError,
    UsageError,
    listed,
    suggestion,
)

TEXT = "SELECT hom\n\tFROM redings"


@pytest.mark.parametrize(
    ("what", "hint", "text"),
    [
        ("no stream a", "", "no stream a"),
        ("no stream a", "Name one.", "no stream a. Name one."),
        ("It is gone.", "Look elsewhere.", "It is gone. Look elsewhere."),
        ("really?", "Yes.", "really? Yes."),
    ],
)
def test_what_and_hint_are_two_sentences(what: str, hint: str, text: str) -> None:
    assert str(InputError(what, hint=hint)) == text


@pytest.mark.parametrize(
    ("place", "pointer"),
    [
        (Place("a.yaml", TEXT, 1, 8, 3), "a.yaml, line 1:\n    SELECT hom\n           ^^^"),
        (Place("a.yaml", TEXT, 2, 7, 7), "a.yaml, line 2:\n     FROM redings\n          ^^^^^^^"),
        (Place("a.yaml", TEXT, 1, 8, 99), "a.yaml, line 1:\n    SELECT hom\n           ^^^"),
        (Place("a.yaml", TEXT, 1, 11, 0), "a.yaml, line 1:\n    SELECT hom\n              ^"),
        (Place("a.yaml", TEXT, 9), "a.yaml, line 9:"),
        (Place("a.yaml", TEXT, 0), "a.yaml, line 0:"),
        (Place("a.yaml", "", 1), "a.yaml, line 1:"),
    ],
)
def test_the_place_is_underlined(place: Place, pointer: str) -> None:
    assert place.pointer() == pointer
    assert str(InputError("no", place=place)) == f"{pointer}\nno"


def test_the_first_place_stays() -> None:
    first, second = Place("a", "x", 1), Place("b", "y", 1)
    error = InputError("no")
    assert error.at(first).at(second) is error
    assert error.place is first


def test_every_kind_leaves_with_its_own_code() -> None:
    kinds = (InputError, UsageError, UnreachableError, RunError)
    assert [kind.exit_code for kind in kinds] == [1, 2, 3, 4]
    assert all(issubclass(kind, PenstockError) for kind in kinds)


def test_lists_and_suggestions() -> None:
    assert listed(iter(["a", "b"])) == "a, b"
    assert suggestion("READINGS", ["readings"]) == "Did you mean readings?"
    assert suggestion("x", []) == ""
