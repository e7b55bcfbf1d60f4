"""Windows and time bounds."""

from collections.abc import Callable

import pytest

from model.samples import MIN, S
from penstock.errors import InputError
from penstock.model.windows import LONGEST_US, SessionWindow, TimeBound, Window


def test_a_window_without_a_slide_is_tumbling() -> None:
    assert Window.of(MIN) == Window(MIN, MIN)
    assert Window.of(MIN).is_tumbling
    assert not Window.of(MIN, S).is_tumbling


def test_rows_fall_into_as_many_windows_as_the_slide_goes_into_the_size() -> None:
    assert Window.of(MIN).copies_per_row == 1
    assert Window.of(MIN, 15 * S).copies_per_row == 4
    assert Window.of(10 * S, 4 * S).copies_per_row == 2.5
    assert SessionWindow(S).copies_per_row == 1


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (Window.of(MIN), "every 1 minute"),
        (Window.of(MIN, 15 * S), "1 minute every 15 seconds"),
        (SessionWindow(30 * S), "sessions with gaps of 30 seconds"),
        (TimeBound(-5 * S, MIN), "right in left -5 seconds .. +1 minute"),
        (TimeBound(0, 0), "right in left +0 seconds .. +0 seconds"),
    ],
)
def test_windows_as_people_read_them(window: object, text: str) -> None:
    assert str(window) == text


@pytest.mark.parametrize(
    ("size_us", "slide_us", "message"),
    [
        (0, S, "a window of 0 seconds every 1 second. Both must be longer than zero."),
        (S, 0, "a window of 1 second every 0 seconds. Both must be longer than zero."),
        (-S, S, "a window of -1 second every 1 second. Both must be longer than zero."),
        (S, -S, "a window of 1 second every -1 second. Both must be longer than zero."),
        (
            S,
            MIN,
            "a window of 1 second that slides by 1 minute would skip rows. "
            "Make the slide at most as long as the window.",
        ),
    ],
)
def test_impossible_windows_are_refused(size_us: int, slide_us: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Window(size_us, slide_us)
    assert str(caught.value) == message


@pytest.mark.parametrize(("gap_us", "shown"), [(0, "0 seconds"), (-S, "-1 second")])
def test_impossible_gaps_are_refused(gap_us: int, shown: str) -> None:
    with pytest.raises(InputError) as caught:
        SessionWindow(gap_us)
    assert str(caught.value) == f"a session with a gap of {shown}. Give a gap above zero."


def test_an_empty_bound_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        TimeBound(S, -S)
    message = "a time bound from 1 second to -1 second is empty. Swap the two ends."
    assert str(caught.value) == message


def test_a_bound_may_be_one_moment() -> None:
    assert TimeBound(S, S).lower_us == S


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (Window.of, "a window"),
        (SessionWindow, "a session with a gap"),
        (lambda us: TimeBound(-us, 0), "a time bound"),
        (lambda us: TimeBound(0, us), "a time bound"),
    ],
)
def test_what_would_leave_the_calendar_far_behind_is_refused(
    build: Callable[[int], object], what: str
) -> None:
    build(LONGEST_US)
    with pytest.raises(InputError) as caught:
        build(LONGEST_US + MIN)
    assert str(caught.value) == (
        f"{what} of 525600001 minutes is too long. Give at most 365000 days."
    )
