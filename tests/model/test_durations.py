"""Durations: what people write, exactly, and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.model.durations import duration_text, duration_us


@pytest.mark.parametrize(
    ("written", "us"),
    [
        ("7us", 7),
        ("7 microseconds", 7),
        ("500ms", 500_000),
        ("1 millisecond", 1_000),
        ("30 s", 30_000_000),
        ("30 sec", 30_000_000),
        ("30 Seconds", 30_000_000),
        ("2min", 120_000_000),
        ("2 mins", 120_000_000),
        ("1.5h", 5_400_000_000),
        ("6 hours", 21_600_000_000),
        ("1d", 86_400_000_000),
        ("2 weeks", 1_209_600_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1h30min", 5_400_000_000),
        ("  90  ", 90_000_000),
        ("0.000001", 1),
        ("0s", 0),
        (90, 90_000_000),
        (0.25, 250_000),
        (-1, -1_000_000),
    ],
)
def test_durations_are_read(written: str | int | float, us: int) -> None:
    assert duration_us(written) == us


@pytest.mark.parametrize(
    "written",
    [
        *("", "   ", "s", "five s", "5 parsecs", "-5 s", "5 s ago", "1h, 2min", "5,5 s", "m"),
        *(True, float("nan"), float("inf"), float("-inf")),
    ],
)
def test_what_is_no_duration_is_refused(written: str | float) -> None:
    with pytest.raises(InputError) as caught:
        duration_us(written)
    shown = written.strip() if isinstance(written, str) else written
    hint = "Write for example 500ms, 30 s, 2min, 6 hours or 1 day."
    assert str(caught.value) == f"{shown!r} is not a duration. {hint}"


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 seconds"),
        (1, "1 microsecond"),
        (1_000, "1 millisecond"),
        (1_500_000, "1500 milliseconds"),
        (1_000_000, "1 second"),
        (90_000_000, "90 seconds"),
        (3_600_000_000, "1 hour"),
        (5_400_000_000, "90 minutes"),
        (86_400_000_000, "1 day"),
        (86_400_000_001, "86400000001 microseconds"),
    ],
)
def test_durations_are_written_with_the_largest_unit_that_is_exact(us: int, text: str) -> None:
    assert duration_text(us) == text


@settings(database=None, deadline=None)
@given(us=st.integers(0, 10**20))
def test_written_durations_read_back_exactly(us: int) -> None:
    assert duration_us(duration_text(us)) == us
    assert duration_us(f"{us} us") == us
