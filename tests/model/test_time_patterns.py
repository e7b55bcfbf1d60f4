"""Patterns of times: what is read, what is not, and what cannot be a pattern."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.errors import InputError
from penstock.model.time_patterns import LETTERS, time_pattern


def us(*parts: int) -> int:
    moment = datetime(*parts, tzinfo=UTC)  # type: ignore[misc]
    return int(moment.timestamp()) * 10**6 + moment.microsecond


@pytest.mark.parametrize(
    ("pattern", "text", "micros"),
    [
        ("dd/MMM/yyyy:HH:mm:ss Z", "10/Oct/2000:13:55:36 -0700", us(2000, 10, 10, 20, 55, 36)),
        ("dd/MMM/yyyy:HH:mm:ss Z", "10/oct/2000:13:55:36 +0000", us(2000, 10, 10, 13, 55, 36)),
        (
            "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
            "2024-02-29T01:02:03.5Z",
            us(2024, 2, 29, 1, 2, 3, 500000),
        ),
        ("M/d/yy h:mm a", "1/2/03 12:30 am", us(2003, 1, 2, 0, 30)),
        ("yyyyMMddHHmmss", "19991231235959", us(1999, 12, 31, 23, 59, 59)),
        ("dd:HH", "29:23", us(1970, 1, 29, 23)),
        ("yyyy 'o''clock' HH", "2024 O'CLOCK 07", us(2024, 1, 1, 7)),
        ("yyyy", "0001", us(1, 1, 1)),
        (
            "yyyy-MM-dd HH:mm:ss.SSSSSSSSS",
            "2024-01-01 00:00:00.123456789",
            us(2024, 1, 1, 0, 0, 0, 123456),
        ),
    ],
)
def test_times_that_are_read(pattern: str, text: str, micros: int) -> None:
    assert time_pattern(pattern).read(text) == micros


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("dd/MM/yyyy", "1/01/2024"),
        ("dd/MM/yyyy", "30/02/2024"),
        ("dd/MM/yyyy", "01/01/2024 "),
        ("yyyy", "12345"),
        ("yyyy", "+12345"),
        ("yyyy", "-0001"),
        ("yyyy", "0000"),
        ("HH", "24"),
        ("yyyy Z", "0001 +0100"),
        ("yyyy-MM-dd HH:mm Z", "9999-12-31 23:59 -0100"),
        ("yyyy Z", "2024 +1801"),
        ("yyyy Z", "2024 Z"),
        ("hh a", "13 PM"),
        ("MMM", "Sept"),
    ],
)
def test_what_is_no_such_time(pattern: str, text: str) -> None:
    assert time_pattern(pattern).read(text) is None


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("EEE, dd MMM", "EEE in the time pattern 'EEE, dd MMM' is not supported"),
        ("yyyy-MM-dd VV", "VV in the time pattern 'yyyy-MM-dd VV' is not supported"),
        ("yyyy[-MM]", "[ in the time pattern 'yyyy[-MM]' is not supported"),
        ("hh:mm", "the time pattern 'hh:mm' has no clear hour"),
        ("HH hh a", "the time pattern 'HH hh a' has no clear hour"),
        ("yyyy yy", "the time pattern 'yyyy yy' says the year twice"),
        ("MM MM", "the time pattern 'MM MM' says the month twice"),
        ("ssSSS", "nothing separates ss and SSS in the time pattern 'ssSSS'"),
        ("Md", "nothing separates M and d in the time pattern 'Md'"),
        ("--", "the time pattern '--' says nothing about a time"),
        ("yyyy 'open", 'a quote in the time pattern "yyyy \'open" is not closed'),
    ],
)
def test_what_is_no_pattern(pattern: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        time_pattern(pattern)
    assert caught.value.what == what


def test_the_letters_listed_are_the_letters_read() -> None:
    for letters in LETTERS.replace("S…SSSSSSSSS", "S SSSSSSSSS").split():
        extra = {"hh": " a", "h": " a", "a": " hh"}.get(letters, "")
        assert time_pattern(letters + extra)


@tried(200)
@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)))
def test_every_moment_of_the_calendar_comes_back(moment: datetime) -> None:
    text = f"{moment.isoformat(' ', 'microseconds')}"
    read = time_pattern("yyyy-MM-dd HH:mm:ss.SSSSSS").read(text)
    assert read == (moment - datetime(1970, 1, 1)) // (datetime.resolution)
