"""What is said of what a query shares."""

from __future__ import annotations

from penstock.cli.sharing_text import graph_lines, sharing_lines
from penstock.control.sharing_models import (
    GraphAnswer,
    GraphPartAnswer,
    SharedAnswer,
    SharingAnswer,
)

RESULT = SharedAnswer(
    stream="strict",
    source="busy",
    fragment="busy",
    submission="busy",
    used_by=["busy"],
    tapped=False,
    signature="3:f00",
    rest="kwh > 12",
)
INSIDE = RESULT.model_copy(
    update={"source": "busy_aggregate", "tapped": True, "rest": None, "used_by": ["all", "busy"]}
)
SLICES = RESULT.model_copy(
    update={"source": "busy_aggregate_slices", "tapped": True, "is_sliced": True, "rest": None}
)


def told(shared: SharedAnswer, notes: tuple[str, ...] = ()) -> SharingAnswer:
    return SharingAnswer(shared=[shared], operators=3, saved=["a", "b"], notes=list(notes))


def test_what_is_shared_is_said_when_it_is_submitted() -> None:
    assert list(sharing_lines(told(RESULT))) == [
        "shared    2 of 3 operators: busy (used by busy), with a residual filter: kwh > 12"
    ]
    assert list(sharing_lines(told(INSIDE))) == [
        "shared    2 of 3 operators: busy_aggregate (used by all, busy, inside busy)"
    ]
    assert list(sharing_lines(told(SLICES, ("c is the same as d, but d has failed",)))) == [
        "shared    2 of 3 operators: "
        "busy_aggregate_slices (used by busy, slices of the windows of busy)",
        "not shared: c is the same as d, but d has failed",
    ]


def test_a_running_query_says_what_it_reads_of_whom() -> None:
    own = GraphPartAnswer(
        fragment="strict",
        submission="strict",
        node="a",
        operators=["strict_rest", "strict"],
        reads=["busy"],
        shared=["busy"],
        taps=[],
    )
    other = own.model_copy(
        update={"fragment": "busy", "submission": "busy", "operators": ["busy"], "reads": ["rows"]}
    )
    graph = GraphAnswer(
        name="strict",
        own=[own],
        others=[other],
        sharing=told(RESULT),
        projected_s=1.5,
        measured_s=1.25,
        limit_s=3.0,
    )
    assert list(graph_lines(graph)) == [
        "strict",
        "  computes  strict on a: strict_rest, strict from busy",
        "  shares    busy, the result of busy, with a residual filter: kwh > 12; used by busy",
        "  of others busy on a: busy from rows (busy)",
        "  projected 1.5 s (limit 3 s)",
        "  measured  1.2 s, the 99th percentile",
    ]
