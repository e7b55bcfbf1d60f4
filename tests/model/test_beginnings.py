"""What a late beginning gives, held against all rows there ever were.

The plain reasoning: a result that is given must be one of those that the whole stream gives, and of
those that lie after the time it is said to count after, none may be missing. Rows are evaluated
here by hand, one operator after the other.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from model.samples import counted, input_of, read
from penstock.errors import InputError
from penstock.model.beginnings import (
    WHOLE,
    Moments,
    Since,
    checked_start,
    left_given,
    result_given,
    since_behind,
    streams_since,
)
from penstock.model.expressions import Column
from penstock.model.operators import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Input,
    Map,
    Operator,
    PythonOperator,
    Union,
    WindowJoin,
)
from penstock.model.schema import Schema
from penstock.model.windows import SessionWindow, TimeBound, Window

Row = tuple[tuple[str, object], ...]
Rows = list[Row]

TIMES = st.lists(st.integers(0, 60), max_size=12)
A, B = read("a", "ts timestamp", "ts"), read("b", "ts timestamp", "ts")


def after(rows: Rows, moments: Moments) -> Rows:
    return [row for row in rows if all(dict(row)[name] > us for name, us in moments.items())]  # type: ignore[operator]


def windows(operator: Aggregate, rows: Rows) -> Rows:
    time = operator.input.shape.event_time
    starts: Counter[tuple[int, int]] = Counter()
    if isinstance(operator.window, SessionWindow):
        gap = operator.window.gap_us
        begun, last, n = None, None, 0
        for at in sorted(int(dict(row)[time]) for row in rows):  # type: ignore[index, call-overload]
            if last is not None and at - last > gap:
                starts[begun, last + gap] = n  # type: ignore[index]
                begun, n = None, 0
            begun, last, n = at if begun is None else begun, at, n + 1
        if begun is not None and last is not None:
            starts[begun, last + gap] = n
    else:
        size, slide = operator.window.size_us, operator.window.slide_us
        for row in rows:
            at = int(dict(row)[time])  # type: ignore[index, call-overload]
            for start in range((at - size) // slide * slide + slide, at + 1, slide):
                starts[start, start + size] += 1
    return [((WINDOW_START, a), (WINDOW_END, b), ("n", n)) for (a, b), n in starts.items()]


def pairs(operator: WindowJoin, left: Rows, right: Rows) -> Rows:
    mine, other = operator.left.shape.event_time, operator.right.shape.event_time
    low, high = operator.bound.lower_us, operator.bound.upper_us
    found, lonely = [], []
    for one in left:
        at = dict(one)[mine]  # type: ignore[index]
        near = [two for two in right if at + low <= dict(two)[other] <= at + high]  # type: ignore[index, operator]
        found += [one + two for two in near]
        lonely += [] if near else [(*one, *((name, None) for name in operator.right.schema.names))]
    return found + (lonely if operator.join == "left" else [])


def evaluated(operator: Operator, inputs: list[Rows]) -> Rows:
    """What an operator makes of all rows of its inputs."""
    match operator:
        case Aggregate():
            return windows(operator, inputs[0])
        case WindowJoin():
            return pairs(operator, *inputs)
        case Union():
            names = [branch.schema.names for branch in operator.branches]
            return [
                tuple(zip(names[0], dict(row).values(), strict=True))
                for rows in inputs
                for row in rows
            ]
        case Map():
            return [
                tuple((name, dict(row)[one.name]) for name, one in operator.columns)  # type: ignore[attr-defined]
                for row in inputs[0]
            ]
    raise TypeError(operator)


def evaluated_late(operator: Operator, inputs: list[Rows], sinces: list[Since]) -> Rows:
    """What it gives when its inputs count after a time only."""
    seen = list(inputs)
    if isinstance(operator, WindowJoin):
        seen[0] = after(seen[0], left_given(operator, *sinces))
    return after(evaluated(operator, seen), result_given(operator, sinces))


def renamed(name: str, input: Input, *columns: tuple[str, str]) -> Map:
    return Map(name, input, tuple((new, Column(old)) for new, old in columns))


@st.composite
def networks(draw: st.DrawFn) -> list[Operator]:
    """One to four operators, each reading streams or others by some time column of theirs."""
    made: list[Operator] = []
    for number in range(draw(st.integers(1, 4))):
        known = [A, B, *(input_of(one) for one in made if one.output.schema.names == ("ts",))]
        source = made[-1] if made else None
        one = draw(st.sampled_from(known)) if source is None else input_of(source)
        other = draw(st.sampled_from(known))
        kind = draw(st.sampled_from(["window", "join", "left", "union"]))
        name = f"p{number}"
        operator: Operator
        if kind == "window":
            size = draw(st.sampled_from([3, 5, 12]))
            slide = draw(st.sampled_from([size, 2, 3]))
            operator = counted(f"{name}_all", one, Window(size, min(size, slide)))
        elif kind == "union":
            operator = Union(f"{name}_all", (one, other))
        else:
            low = draw(st.integers(-6, 6))
            bound = TimeBound(low, low + draw(st.integers(0, 6)))
            right = renamed(f"{name}_right", other, ("r", "ts"))
            made.append(right)
            join = "inner" if kind == "join" else "left"
            left = renamed(f"{name}_left", one, ("l", "ts"))
            made.append(left)
            operator = WindowJoin(
                f"{name}_all", input_of(left), input_of(right), (), bound, join=join
            )
        made.append(operator)
        times = [time.column for time in operator.output.times]
        made.append(renamed(name, input_of(operator), ("ts", draw(st.sampled_from(times)))))
    return made


@tried(150)
@given(networks(), TIMES, TIMES, st.integers(0, 60))
def test_what_is_given_is_whole_and_nothing_of_it_is_missing(
    network: list[Operator], a: list[int], b: list[int], begin: int
) -> None:
    full: dict[str, Rows] = {"a": [(("ts", at),) for at in a], "b": [(("ts", at),) for at in b]}
    begun = Since.after({"ts": begin})
    sinces = streams_since(network, {"a": begun, "b": begun})
    late = {name: after(rows, begun.given) for name, rows in full.items()}
    for operator in network:
        names = [one.stream for one in operator.inputs]
        full[operator.name] = evaluated(operator, [full[name] for name in names])
        late[operator.name] = evaluated_late(
            operator, [late[name] for name in names], [sinces[name] for name in names]
        )
        everything, seen = Counter(full[operator.name]), Counter(late[operator.name])
        assert not seen - everything, f"{operator} gives {seen - everything}"
        for column, since_us in sinces[operator.name].whole.items():
            wanted = Counter(after(full[operator.name], {column: since_us}))
            assert not wanted - seen, f"{operator} lacks {wanted - seen} after {since_us}"
        # Whoever reads it from one that runs already sees the same.
        shared = Counter(after(full[operator.name], sinces[operator.name].given))
        assert shared == seen, operator


@tried(80)
@given(TIMES, st.integers(0, 60), st.sampled_from([2, 5, 9]))
def test_sessions_that_could_not_have_begun_before(
    times: list[int], begin: int, gap_us: int
) -> None:
    operator = Aggregate("s", A, SessionWindow(gap_us), (), counted("n", A).aggregates)
    rows: Rows = [(("ts", at),) for at in times]
    begun = Since.after({"ts": begin})
    full = evaluated(operator, [rows])
    late = evaluated_late(operator, [after(rows, begun.given)], [begun])
    assert late == after(full, {WINDOW_START: begin + gap_us})
    assert after(late, since_behind(operator, [begun]).whole) == late


def test_one_more_row_before_would_have_changed_what_is_not_given() -> None:
    operator = Aggregate("s", A, SessionWindow(5), (), counted("n", A).aggregates)
    assert result_given(operator, [Since.after({"ts": 10})]) == {WINDOW_START: 15}
    # A row at 10, which is not seen, would have had the session that begins at 15.
    for second, starts in ((15, [10]), (16, [10, 16])):
        made = windows(operator, [(("ts", 10),), (("ts", second),)])
        assert [dict(row)[WINDOW_START] for row in made] == starts


def test_streams_that_are_whole_stay_so() -> None:
    for operator in (counted("n", A), Union("u", (A, B)), renamed("m", A, ("x", "ts"))):
        inputs = [WHOLE] * len(operator.inputs)
        assert since_behind(operator, inputs) == WHOLE
        assert result_given(operator, inputs) == {}


def test_time_that_is_not_passed_on_is_not_known() -> None:
    schema = Schema.parse("n int")
    begun = Since.after({"ts": 5})
    assert since_behind(PythonOperator("p", A, "m:f", schema), [begun]) == WHOLE
    schema = Schema.parse("n int, ts timestamp")
    assert since_behind(PythonOperator("p", A, "m:f", schema), [begun]) == begun


def test_ways_to_begin() -> None:
    assert [checked_start(one) for one in ("now", "oldest", "start")] == ["now", "oldest", "start"]
    with pytest.raises(InputError, match=r"begin from 'yesterday'\. Say now, oldest or start"):
        checked_start("yesterday")
