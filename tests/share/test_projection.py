"""Projection: the formulas, segments, and what simulated queues say to them."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.share.load_signatures import (
    LoadSegment,
    LoadSignature,
    SegmentDetector,
    combine,
    segments_of,
)
from penstock.share.projection import (
    Criterion,
    Estimate,
    NodeLoad,
    ProfiledLoad,
    Serving,
    execution_time_s,
    impact_s,
    is_acceptable,
    segment_impacts_s,
    segment_times_s,
    transmission_time_s,
)

pytestmark = pytest.mark.core

LOADS = st.floats(0, 0.95)
TAUS = st.floats(0.001, 1.0)


@given(TAUS, LOADS, st.floats(0, 1.5))
@tried(50)
def test_the_impact_is_the_difference_of_two_times(tau_s: float, load: float, more: float) -> None:
    before, after = NodeLoad(load), NodeLoad(load + more)
    delta = impact_s([tau_s], before, after)
    if load + more >= 1:
        assert delta == inf
    else:
        assert delta == pytest.approx(tau_s / (1 - load - more) - tau_s / (1 - load), abs=1e-12)


@given(TAUS, LOADS)
@tried(50)
def test_with_equal_service_times_both_ways_of_serving_agree(tau_s: float, load: float) -> None:
    node = NodeLoad(load, load * tau_s)
    assert execution_time_s(tau_s, node, Serving.FCFS) == pytest.approx(
        execution_time_s(tau_s, node), rel=1e-9
    )


def test_every_component_of_an_application_counts_with_its_own_time() -> None:
    before, after = NodeLoad(0.5), NodeLoad(0.75)
    assert impact_s([0.1, 0.2], before, after) == pytest.approx(0.3 * 2)
    assert transmission_time_s(0.1, 0.5) == 0.2
    assert transmission_time_s(0.1, 1.0) == inf


def test_estimates_and_criteria() -> None:
    load = ProfiledLoad(0.1, 0.2, 0.4)
    assert [load.taken(one) for one in Estimate] == [0.4, 0.2, 0.1]
    with pytest.raises(ValueError, match="loads out of order"):
        ProfiledLoad(0.3, 0.2, 0.4)
    impacts_s = segment_impacts_s([0.1], np.array([0.0, 0.5]), 0.25)
    assert impacts_s.round(4).tolist() == [0.0333, 0.2]
    accepted = [
        is_acceptable(1.0, impacts_s, limit, Criterion.EVERY) for limit in (1.1, 1.19, 1.21)
    ]
    assert accepted == [False, False, True]


def test_a_full_segment_is_acceptable_to_nobody() -> None:
    impacts_s = segment_impacts_s([0.1], np.array([0.2, 0.9, 1.2]), 0.1)
    assert np.isfinite(impacts_s).tolist() == [True, False, False]
    assert not is_acceptable(0.0, impacts_s, 1e9)
    assert is_acceptable(0.0, impacts_s, 1e9, Criterion.BEST)


def test_a_segment_shorter_than_the_queue_takes_to_empty_inherits_it() -> None:
    loads = np.array([0.2, 0.9, 0.2, 0.2])
    plain = segment_times_s(0.1, loads)
    held = segment_times_s(0.1, loads, segment_s=0.5)
    # After 0.9 a tuple finds 0.9 s of work, which a load of 0.2 works off in 1.1 s.
    assert held.tolist() == [plain[0], plain[1], plain[1], plain[3]]
    assert segment_times_s(0.1, loads, segment_s=2.0).tolist() == plain.tolist()


def plain_cells(signature: LoadSignature, cells: int, cell_s: float) -> list[float]:
    """The largest load in each cell, by looking at many moments of it."""
    edges, at_s = [], 0.0
    for segment in reversed(signature.segments):
        edges.append((at_s, at_s + segment.length_s, segment.load))
        at_s += segment.length_s
    found = []
    for cell in range(cells):
        start_s, end_s = cell * cell_s, (cell + 1) * cell_s
        touching = [
            load for first, last, load in edges if first < end_s - 1e-9 and last > start_s + 1e-9
        ]
        found.append(max(touching, default=0.0))
    return found[::-1]


SEGMENTS = st.lists(
    st.builds(LoadSegment, st.sampled_from((0.5, 1.0, 1.5, 2.0)), st.sampled_from((0.0, 0.1, 0.4))),
    min_size=1,
    max_size=5,
)


@given(st.lists(SEGMENTS, min_size=1, max_size=3), st.sampled_from((inf, 3.0)))
@tried(50)
def test_signatures_are_cut_at_the_shortest_segment_and_added(
    many: list[list[LoadSegment]], window_s: float
) -> None:
    signatures = [LoadSignature(tuple(one), window_s) for one in many]
    loads, cell_s = combine(signatures)
    assert cell_s == min(
        segment.length_s for signature in signatures for segment in signature.segments
    )
    wanted = np.sum(
        [plain_cells(signature, len(loads), cell_s) for signature in signatures], axis=0
    )
    assert loads == pytest.approx(wanted)


def test_a_signature_forgets_what_is_older_than_its_window() -> None:
    signature = LoadSignature(window_s=2.0).plus(LoadSegment(1.5, 0.1)).plus(LoadSegment(1.0, 0.3))
    assert signature.segments == (LoadSegment(1.0, 0.1), LoadSegment(1.0, 0.3))
    assert combine([LoadSignature()])[0].tolist() == [0.0]


def on_off(
    rng: np.random.Generator, high: float, low: float, period_s: float, until_s: float
) -> np.ndarray:
    times, at_s = [], 0.0
    while at_s < until_s:
        rate = high if int(at_s / (period_s / 2)) % 2 == 0 else low
        count = rng.poisson(rate * period_s / 2)
        times.append(np.sort(at_s + rng.random(count) * period_s / 2))
        at_s += period_s / 2
    return np.concatenate(times)


@pytest.mark.parametrize(
    ("high", "low", "period_s"), [(300, 100, 2.5), (40, 10, 5.0), (30, 10, 5.0)]
)
def test_bursts_are_found_where_they_are(high: float, low: float, period_s: float) -> None:
    found = segments_of(on_off(np.random.default_rng(3), high, low, period_s, 100.0), 100.0)
    ends = np.cumsum([length_s for length_s, _ in found])
    changes = np.arange(period_s / 2, 100.0, period_s / 2)
    near = [np.abs(ends - change).min() < period_s / 10 for change in changes]
    assert np.mean(near) > 0.8
    assert len(found) < 1.3 * len(changes)
    rates = np.array([rate for length_s, rate in found if length_s > period_s / 4])
    assert np.abs(np.sort(rates)[-5:] - high).max() < 0.6 * high


def test_a_steady_stream_is_hardly_ever_cut() -> None:
    rng = np.random.default_rng(5)
    arrivals = np.cumsum(rng.exponential(1 / 20, 4_000))
    found = segments_of(arrivals[arrivals < 180], 180.0)
    assert len(found) <= 6


def test_silence_and_its_end_are_noticed() -> None:
    burst = [5 + at / 100 for at in range(100)]
    found = segments_of(burst, 20.0, SegmentDetector())
    assert [(round(length_s, 1), round(rate)) for length_s, rate in found] == [
        (5.0, 0),
        (1.0, 100),
        (14.0, 0),
    ]
