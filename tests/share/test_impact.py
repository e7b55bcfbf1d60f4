"""What new work does to those that run, from what was measured."""

from __future__ import annotations

import math

import pytest

from penstock.share.impact import (
    MeasuredFragment,
    MeasuredNode,
    MeasuredSystem,
    NewWork,
    chosen,
    on,
    what_would_help,
)

A, B = MeasuredNode("a", 1, 0.5, 0.7), MeasuredNode("b", 2, 0.1, 0.1)
WATCH = MeasuredFragment("watch", "ddos", "a", batch_s=0.2, latency_s=1.1, limit_s=2.0, cores=0.2)
LATER = MeasuredFragment("later", "ddos", "a", batch_s=0.1, latency_s=1.5, reads=("watch",))
OTHER = MeasuredFragment("other", "volume", "b", batch_s=0.4, latency_s=0.9, limit_s=5.0)


def work(cores: float | None = 0.1, node: str = "a", **told: object) -> NewWork:
    return NewWork("new", node, cores, **{"batch_s": 0.05, "round_s": 0.5, **told})  # type: ignore[arg-type]


def test_a_batch_takes_longer_by_what_is_left_of_the_node() -> None:
    impact = MeasuredSystem((A, B), (WATCH, OTHER)).with_new([work()])
    (touched,) = impact.touched
    assert touched.after_s == pytest.approx(1.1 + 0.2 * 0.1 / 0.4)
    assert impact.loads == {"a": pytest.approx(0.6)} and impact.peaks["a"] == pytest.approx(0.8)
    assert impact.latency_s == pytest.approx(0.5 + 0.05 / 0.4)
    assert impact.phi == pytest.approx(0.1 / 0.5) and impact.fits


def test_delays_add_up_on_the_way() -> None:
    (touched,) = MeasuredSystem((A,), (WATCH, LATER)).with_new([work()]).touched
    assert touched.after_s == pytest.approx(1.5 + (0.2 + 0.1) * 0.1 / 0.4)


def test_what_it_reads_comes_first() -> None:
    impact = MeasuredSystem((A, B), (WATCH,)).with_new([work(node="b", reads=("watch",))])
    assert impact.latency_s == pytest.approx(1.1 + 0.5 + 0.05 / 0.85)
    assert impact.touched == ()


def test_limits_of_others_are_kept() -> None:
    situation = MeasuredSystem((A, B), (WATCH,))
    impact = situation.with_new([work(0.45)])
    assert [one.query for one in impact.late] == ["ddos"] and not impact.fits
    assert not impact.full


def test_a_full_node_is_slow_without_limits_and_refused_with_them() -> None:
    free = MeasuredSystem((A,), ())
    assert free.with_new([work(0.6)]).fits
    impact = free.with_new([work(0.6, limit_s=9.0)])
    assert impact.full == ("a",) and impact.latency_s == math.inf and not impact.fits


def test_what_was_not_measured_is_not_judged() -> None:
    unknown = MeasuredSystem(
        (MeasuredNode("a", 1),), (MeasuredFragment("w", "q", "a", limit_s=1.0),)
    )
    assert unknown.with_new([work(9.0)]).fits
    impact = MeasuredSystem((A,), ()).with_new([work(None, limit_s=0.1)])
    assert impact.latency_s is None and impact.fits


def test_it_goes_where_it_fits() -> None:
    situation = MeasuredSystem((A, B), (WATCH, OTHER))
    placed, impact = chosen(situation, (work(0.45),))
    assert placed == on([work(0.45)], "b") and impact.fits
    placed, impact = chosen(situation, (work(0.45),), lambda _: False)
    assert placed[0].node == "a" and not impact.fits


def test_what_would_help_is_checked() -> None:
    situation = MeasuredSystem((A, B), (WATCH, OTHER))
    late = work(0.1, limit_s=0.6)
    (limit,) = [
        one
        for one in what_would_help(situation, (late,), situation.with_new([late]))
        if one.kind == "limit"
    ]
    assert limit.text == "--max-latency 0.7s"
    heavy = work(0.45)
    found = what_would_help(situation, (heavy,), situation.with_new([heavy]))
    assert [one.kind for one in found] == ["node", "move", "one more node"]
    assert found[1].text == "watch moved to b (penstock move watch b)"


def test_nothing_helps_where_nothing_is_enough() -> None:
    situation = MeasuredSystem((A,), ())
    huge = work(5.0, limit_s=1.0)
    assert what_would_help(situation, (huge,), situation.with_new([huge])) == ()


def light(name: str, latency_s: float | None = 1.2, **told: object) -> MeasuredFragment:
    """A light fragment in rounds of a second that take 0.2 s."""
    given = {"batch_s": 0.2, "round_s": 1.0, "streams": ("s",), **told}
    return MeasuredFragment(name, name, "a", latency_s=latency_s, **given)  # type: ignore[arg-type]


def joining(**told: object) -> NewWork:
    return work(**{"round_s": 2.0, "streams": ("s",), "is_light": True, **told})  # type: ignore[arg-type]


def test_a_light_one_joins_the_rounds_of_its_node() -> None:
    impact = MeasuredSystem((A,), (light("first"), light("second", 1.4))).with_new([joining()])
    # A row waits for a round, which takes longer by what is new and by its own part.
    slower_s, own_s = 0.2 * 0.1 / 0.4, 0.1 * 1.0 / 0.4
    assert impact.latency_s == pytest.approx(1.0 + 0.2 + slower_s + own_s)
    assert [touched.after_s for touched in impact.touched] == [
        pytest.approx(1.2 + slower_s), pytest.approx(1.4 + slower_s),
    ]  # fmt: skip


def test_of_a_stream_that_nobody_there_reads_results_are_a_round_old() -> None:
    impact = MeasuredSystem((A,), (light("first"),)).with_new([joining(streams=("other",))])
    assert impact.latency_s == pytest.approx(1.0 + 0.2 + 0.2 * 0.1 / 0.4 + 0.1 * 1.0 / 0.4)


def test_one_in_a_hurry_has_all_go_round_more_often() -> None:
    impact = MeasuredSystem((A,), (light("first"),)).with_new([joining(round_s=0.5)])
    slower_s = 0.2 * 0.1 / 0.4
    assert impact.touched[0].after_s == pytest.approx(1.2 + slower_s - 0.5)
    assert impact.latency_s == pytest.approx(0.5 + 0.2 + slower_s + 0.1 * 0.5 / 0.4)


def test_what_reads_a_light_one_beside_it_is_computed_in_the_same_round() -> None:
    beside = MeasuredSystem((A, B), (light("first"),))
    impact = beside.with_new([joining(streams=(), reads=("first",))])
    assert impact.latency_s == pytest.approx(1.2 + 0.2 * 0.1 / 0.4 + 0.1 * 1.0 / 0.4)
    elsewhere = beside.with_new([joining(streams=(), reads=("first",), node="b")])
    assert elsewhere.latency_s == pytest.approx(1.2 + 2.0 + 0.05 / 0.85)


def test_delays_of_a_round_do_not_add_up_within_it() -> None:
    follower = light("second", 1.25, streams=(), reads=("first",))
    impact = MeasuredSystem((A,), (light("first"), follower)).with_new([joining()])
    assert impact.touched[1].after_s == pytest.approx(1.25 + 0.2 * 0.1 / 0.4)


def test_who_opens_a_stream_pays_for_it_once() -> None:
    opening = joining(opening_cores=0.2)
    empty = MeasuredSystem((A, B), ())
    assert empty.with_new([opening]).loads["a"] == pytest.approx(0.8)
    assert empty.with_new([opening, opening]).loads["a"] == pytest.approx(0.9)
    open_already = MeasuredSystem((A, B), (light("first"),))
    assert open_already.with_new([opening]).loads["a"] == pytest.approx(0.6)
    assert open_already.with_new(on([opening], "b")).loads["b"] == pytest.approx(0.1 + 0.15)
