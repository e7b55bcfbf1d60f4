"""Since when results count that begin after their streams did, and what of them is whole.

A stream counts after a time if every row later than that is seen. What an operator makes of such
streams is whole from some time on; what could depend on a row that was not seen is not given.
:mod:`penstock.model.operators` says what operators do, the rules here what of it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from penstock.errors import InputError
from penstock.model.expressions import is_column
from penstock.model.operators import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Map,
    Operator,
    PythonOperator,
    Union,
    WindowJoin,
)
from penstock.model.retime import Retime
from penstock.model.schema import Shape
from penstock.model.slices import FromSlices, Slices
from penstock.model.windows import AnyWindow, SessionWindow

StartKind = Literal["now", "oldest", "start"]
START_KINDS: tuple[StartKind, ...] = get_args(StartKind)

Moments = Mapping[str, int]
"""Microseconds by time column."""


@dataclass(frozen=True)
class Since:
    """After which times a stream counts.

    Rows are given that lie after ``given`` in all its columns. By any one column of ``whole`` none
    is missing among those that lie after its time. Without either a stream is whole.
    """

    given: Moments = field(default_factory=dict)
    whole: Moments = field(default_factory=dict)

    @classmethod
    def after(cls, moments: Moments) -> Since:
        """All rows after these times, and no others.

        >>> Since.after({"ts": 5}).given
        {'ts': 5}
        """
        return cls(moments, moments)


WHOLE = Since()


def checked_start(written: str) -> StartKind:
    """``written`` as a way to begin; raises with the list of them."""
    for kind in START_KINDS:
        if written == kind:
            return kind
    raise InputError(f"a query cannot begin from {written!r}", hint="Say now, oldest or start.")


@dataclass(frozen=True)
class InputStart:
    """Where a fragment begins to read a channel, and which of its rows count.

    ``next`` is the first batch it reads; of its rows those count that ``since`` gives.
    ``before`` is a channel to read first: rows that are gone from this one, made again.
    """

    next: int = 0
    since: Since = WHOLE
    before: str | None = None


@dataclass(frozen=True)
class Reread:
    """Rows of a stream to be made again: those before a position, as they were judged then.

    So many files are read whole, and so many rows of the next; of a generator all are in one file.
    ``high_water_us`` is how far the stream's time had come there, ``ended`` whether that was its
    end. ``jumps`` are positions at which its time moved on by itself, and where to.
    """

    stream: str
    file: int
    row: int
    high_water_us: int | None = None
    ended: bool = False
    jumps: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Reread:
        """What ``dataclasses.asdict`` has made of it, read back."""
        jumps = tuple((file, row, us) for file, row, us in record["jumps"])
        return cls(**{**record, "jumps": jumps})


@dataclass(frozen=True)
class Beginning:
    """Since when a fragment counts: decided once, and the same for every owner it ever has.

    ``since_us`` is the event time after which its results are whole, None where they are so from
    the first row on or where ``is_untimed`` says that no event time tells.

    >>> late = Beginning("now", 5, {"s": InputStart(3)})
    >>> Beginning.from_record(late.to_record()) == late
    True
    """

    start: StartKind = "start"
    since_us: int | None = None
    inputs: Mapping[str, InputStart] = field(default_factory=dict)
    is_untimed: bool = False

    def to_record(self) -> dict[str, Any]:
        """The beginning as plain values; :meth:`from_record` reads it back."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Beginning:
        """The beginning that :meth:`to_record` gave."""
        inputs = {
            name: InputStart(**{**start, "since": Since(**start["since"])})
            for name, start in record["inputs"].items()
        }
        return cls(**{**record, "inputs": inputs})


FIRST = Beginning()
"""That of a fragment which is there when its streams begin."""


@dataclass(frozen=True)
class Begun:
    """Since when the fragments of a submission count, and what is made ``again`` for them.

    Those that are not named are there when their streams begin.
    """

    start: StartKind = "now"
    fragments: Mapping[str, Beginning] = field(default_factory=dict)
    again: Mapping[str, Reread] = field(default_factory=dict)


def left_given(join: WindowJoin, left: Since, right: Since) -> Moments:
    """Which left rows of a join count beyond what their own stream says.

    A left join says of a row that it has no partner, so all that could be must have been seen.
    """
    seen_us = _event_time(join.right.shape, right)
    if join.join != "left" or seen_us is None or join.left.shape.event_time is None:
        return {}
    return {join.left.shape.event_time: seen_us - join.bound.lower_us}


def result_given(operator: Operator, inputs: Sequence[Since]) -> Moments:
    """Which of its results an operator gives, of all that it makes of the rows it is given."""
    if isinstance(operator, Aggregate | FromSlices | Union | Map | PythonOperator):
        return since_behind(operator, inputs).given
    return {}


def since_behind(operator: Operator, inputs: Sequence[Since]) -> Since:
    """After which times an operator's results count, given those of its inputs."""
    match operator:
        case Aggregate():
            return _of_windows(operator.window, _event_time(operator.input.shape, inputs[0]))
        case Slices():
            return _of_windows(operator.window, _event_time(operator.of.input.shape, inputs[0]))
        case FromSlices():
            # Windows that start later have no slice that starts earlier.
            return _of_windows(operator.whole.window, inputs[0].whole.get(WINDOW_START))
        case WindowJoin():
            return _of_pairs(operator, *inputs)
        case Union():
            pairs = zip(operator.branches, inputs, strict=True)
            latest_us = _latest(_event_time(branch.shape, since) for branch, since in pairs)
            return _by_event_time(operator.output, {operator.output.event_time or "": latest_us})
        case Map(columns=columns):
            passed_on = {
                name: since_us
                for name, expression in columns
                for column, since_us in inputs[0].whole.items()
                if is_column(expression, column)
            }
            return _by_event_time(operator.output, passed_on)
        case PythonOperator():
            return _by_event_time(operator.output, inputs[0].whole)
        case Retime():
            # One that does not read from the start is refused.
            return WHOLE
    return inputs[0]


def streams_since(operators: Iterable[Operator], known: Mapping[str, Since]) -> dict[str, Since]:
    """After which times each stream counts; operators come after what they read.

    Streams of which nothing is ``known`` are whole. Linear in the operators.
    """
    found = dict(known)
    for operator in operators:
        inputs = [found.get(stream.stream, WHOLE) for stream in operator.inputs]
        behind = since_behind(operator, inputs)
        found |= {name: behind for name in operator.outputs if name not in known}
    return found


def _event_time(shape: Shape, since: Since) -> int | None:
    return since.whole.get(shape.event_time or "")


def _by_event_time(shape: Shape, whole: Mapping[str, int | None]) -> Since:
    """Rows are given by the event time; by other columns they are whole as they were before."""
    known = {time.column: whole[time.column] for time in shape.times if time.column in whole}
    kept = {name: since_us for name, since_us in known.items() if since_us is not None}
    event_time = shape.event_time
    if event_time is None or event_time not in kept:
        return WHOLE
    return Since({event_time: kept[event_time]}, kept)


def _of_windows(window: AnyWindow, since_us: int | None) -> Since:
    if since_us is None:
        return WHOLE
    if isinstance(window, SessionWindow):
        gap_us = window.gap_us
        # Those that start within a gap could belong to a session that was there before; the others
        # last for a gap at least.
        return Since({WINDOW_START: since_us + gap_us}, {WINDOW_END: since_us + 2 * gap_us})
    whole = {WINDOW_END: since_us + window.size_us, WINDOW_START: since_us}
    return Since({WINDOW_START: since_us}, whole)


def _of_pairs(operator: WindowJoin, left: Since, right: Since) -> Since:
    """A pair is whole by one side's time where the other side's is seen as far as it may lie."""
    mine, other = operator.left.shape.event_time, operator.right.shape.event_time
    assert mine is not None and other is not None
    left_us, right_us = left.whole.get(mine), right.whole.get(other)
    by_left = _latest([left_us, None if right_us is None else right_us - operator.bound.lower_us])
    by_right = _latest([right_us, None if left_us is None else left_us + operator.bound.upper_us])
    if operator.join == "left":
        return _by_event_time(operator.output, {mine: by_left})
    given = {name: us for name, us in ((mine, left_us), (other, right_us)) if us is not None}
    whole = {name: us for name, us in ((mine, by_left), (other, by_right)) if us is not None}
    return Since(given, whole)


def _latest(moments: Iterable[int | None]) -> int | None:
    return max((moment for moment in moments if moment is not None), default=None)
