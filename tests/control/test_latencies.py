"""Who comes later than it may, and why."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.control.answer_models import FragmentAnswer, NodeAnswer, ShownState
from penstock.control.latencies import Wanted, misses
from penstock.model.measurements import FragmentStatus


def node(utilisation: float) -> NodeAnswer:
    return NodeAnswer(
        name="a",
        state="up",
        cores=2,
        memory_limit_bytes=1,
        pid=1,
        version="",
        utilisation=utilisation,
        memory_bytes=1,
        heard={},
        runs=[],
    )


IDLE, FULL = node(0.2), node(0.98)


def fragment(name: str, state: ShownState = "running", **measured: Any) -> FragmentAnswer:
    return FragmentAnswer(
        name=name,
        kind="fragment",
        node="a",
        belongs="a",
        state=state,
        notes=[],
        limit_s=None,
        late=False,
        epoch=1,
        error="",
        restarts=0,
        restarts_at_most=3,
        since=None,
        untimed=False,
        measured=FragmentStatus(name, **{"batch_ms": 4_000.0, "batches": 3, **measured}),
    )


def why(one: FragmentAnswer, node: NodeAnswer = IDLE, *others: FragmentAnswer) -> str | None:
    wanted = {"q": Wanted(5.0, ("up",)), "up": Wanted(5.0)}
    found = misses([one, *others], [node], wanted)
    return found["q"].text if "q" in found else None


@pytest.mark.parametrize(
    "measured",
    [
        {},
        {"latest_latency_s": 5.0},
        {"waiting_s": 4.0, "latest_latency_s": 1.0},
        {"waiting_s": None},
    ],
)
def test_in_time(measured: dict[str, float]) -> None:
    assert why(fragment("q", **measured)) is None


def test_without_a_limit_nothing_is_late() -> None:
    assert misses([fragment("q", waiting_s=1e6)], [IDLE], {"q": Wanted(None)}) == {}
    assert misses([fragment("q", waiting_s=1e6)], [IDLE], {}) == {}


@pytest.mark.parametrize("state", ["finished", "failed", "unread"])
def test_nor_what_is_over(state: ShownState) -> None:
    assert why(fragment("q", state, waiting_s=1e6)) is None


def test_rows_that_wait_count_before_any_result_is_out() -> None:
    """One that starves has no latency to show."""
    assert why(fragment("q", waiting_s=142.4)) == (
        "results take 142 s instead of 5 s: its batches take 4 s"
    )


def test_the_first_batch_takes_its_time() -> None:
    assert why(fragment("q", waiting_s=20, batches=0, batch_ms=0.0)) == (
        "results take 20 s instead of 5 s: its first batch is not out yet"
    )


def test_what_was_slow_long_ago_does_not_count() -> None:
    assert why(fragment("q", latency_p50_s=60.0)) is None


def test_the_node_has_too_much_to_do() -> None:
    assert why(fragment("q", latest_latency_s=7.5), FULL) == (
        "results take 7.5 s instead of 5 s: node a is overloaded, 98% of its cores in use"
    )


def test_it_waits_for_its_turn() -> None:
    others = [fragment(name) for name in ("r", "s")] + [fragment("t", "finished")]
    assert why(fragment("q", latest_latency_s=7.5), FULL, *others) == (
        "results take 7.5 s instead of 5 s: node a is overloaded, 98% of its cores in use; "
        "it waits for its turn among 3 fragments"
    )


def test_its_reader_holds_it_back() -> None:
    assert why(fragment("q", "held back", waiting_s=9), FULL) == (
        "results take 9 s instead of 5 s: it is held back by what reads it"
    )


def test_its_input_is_late() -> None:
    late = fragment("up", waiting_s=60)
    assert why(fragment("q", waiting_s=61), FULL, late) == (
        "results take 61 s instead of 5 s: its input is late: up"
    )


def test_it_does_not_run() -> None:
    assert why(fragment("q", "waiting", waiting_s=9)) == (
        "results take 9 s instead of 5 s: it is waiting"
    )
