"""The window of a GROUP BY: its lengths, and the event time it is over."""

from __future__ import annotations

from datetime import timedelta

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql import literals
from penstock.lang.sql.context import QueryContext
from penstock.lang.sql.places import WrittenText
from penstock.lang.sql.scope import RowScope
from penstock.model.durations import duration_us
from penstock.model.expressions import Column
from penstock.model.operators import Input, check_windowable
from penstock.model.windows import AnyWindow, SessionWindow, Window

_FORMS = {
    "window": "window(time, 'size') or window(time, 'size', 'slide')",
    "session_window": "session_window(time, 'gap')",
}


def window_of(node: exp.Expr, written: WrittenText) -> AnyWindow:
    """The window that ``window(time, 'size', 'slide')`` or ``session_window`` describes."""
    name = node.name.lower()
    lengths = [_length_us(expression, written) for expression in node.expressions[1:]]
    allowed = (1, 2) if name == "window" else (1,)
    if len(lengths) not in allowed:
        raise written.error(
            node, f"{name} with {len(lengths) + 1} arguments", f"Write {_FORMS[name]}."
        )
    with written.pointing_at(node):
        return Window.of(*lengths) if name == "window" else SessionWindow(*lengths)


def _length_us(node: exp.Expr, written: WrittenText) -> int:
    if isinstance(node, exp.Interval):
        return literals.interval(node, written) // timedelta(microseconds=1)
    if isinstance(node, exp.Literal) and node.is_string:
        with written.pointing_at(node):
            return duration_us(node.name)
    what = f"{written.quoted(node)} is not a length of time"
    raise written.error(node, what, "Write it in quotes, for example '1 hour'.")


def event_time_input(
    node: exp.Expr, rows: RowScope, input: Input, needed: frozenset[str], context: QueryContext
) -> Input:
    """``input`` with the column a window is over as its event time.

    The event time of a stream with several known times is the first of them; a later one takes
    its place if the earlier ones are not needed, and so can be left out.
    """
    time = _time_column(node, rows)
    titles = " and ".join(relation.title for relation in rows.relations)
    with context.written.pointing_at(node):
        check_windowable(Input(titles, input.shape), "a window")
    times = [time_column.column for time_column in input.shape.times]
    if time == times[0]:
        return input
    before = frozenset(times[: times.index(time)]) if time in times else frozenset(times)
    if time not in times or before & needed:
        raise _not_event_time(node, time, times[0], titles, rows)
    kept = [name for name in input.schema.names if name in needed | {time}]
    return context.mapped(node, input, tuple((name, Column(name)) for name in kept))


def _time_column(node: exp.Expr, rows: RowScope) -> str:
    given = node.expressions[0] if node.expressions else None
    if not isinstance(given, exp.Column):
        name = node.name.lower()
        what = f"{name} must be over the event-time column"
        raise rows.written.error(given or node, what, f"Write {_FORMS[name]}.")
    return rows.within("GROUP BY").column(given)


def _not_event_time(
    node: exp.Expr, time: str, event_time: str, titles: str, rows: RowScope
) -> InputError:
    shown = rows.shown(event_time)
    return rows.written.error(
        node.expressions[0].this,
        f"{rows.shown(time)} is not the event time of {titles}; that is {shown}",
        f"Write {node.name.lower()}({shown}, …).",
    )
