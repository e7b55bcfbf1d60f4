"""How tuples arrive."""

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.sim.arrivals import Alternating, Arrivals, OnOff, Recorded, Steady, self_similar
from penstock.sim.simulation import Simulation, logged_events
from sim.networks import chains


def _times(*arrivals: Arrivals, until_s: float, seed: int = 1) -> list[np.ndarray]:
    lines: list[bytes] = []
    network = chains(1, len(arrivals), 1, cost_s=0.0)
    given = {f"I{i}": one for i, one in enumerate(arrivals)}
    Simulation(network, given, [0] * len(arrivals), seed, log=lines.append).advance(until_s)
    events = [(time, who) for time, kind, who in logged_events(b"".join(lines)) if kind == 2]
    sources = sorted({who for _, who in events})
    return [np.array([time for time, who in events if who == source]) for source in sources]


def test_poisson_arrivals_have_their_rate_and_spread() -> None:
    (times,) = _times(Steady(100), until_s=400)
    gaps = np.diff(times)
    assert len(times) == pytest.approx(40_000, abs=4 * 200)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)


def test_periodic_arrivals_are_evenly_spaced() -> None:
    (times,) = _times(Steady(8, periodic=True), until_s=10)
    assert np.diff(times) == pytest.approx(0.125)


def test_alternating_rates() -> None:
    stream = Alternating(100, ratio=4, period_s=10, offset_s=3)
    (times,) = _times(stream, until_s=1_000)
    is_high = (times + 3) % 10 < 5
    assert is_high.sum() / 500 == pytest.approx(160, rel=0.03)
    assert (~is_high).sum() / 500 == pytest.approx(40, rel=0.03)


def test_streams_of_one_rhythm_burst_together_or_in_turn() -> None:
    a, b, c = _times(
        OnOff(50, rhythm=3), OnOff(50, rhythm=3), OnOff(50, rhythm=3, opposite=True), until_s=2_000
    )
    assert np.array_equal(a, b)
    seconds = [np.histogram(one, np.arange(0, 2_000, 0.25))[0] > 0 for one in (a, c)]
    assert (seconds[0] & seconds[1]).mean() < 0.1
    assert (seconds[0] | seconds[1]).mean() > 0.95
    for one in (a, c):
        assert len(one) / 2_000 == pytest.approx(50, rel=0.2)


def test_a_shifted_rhythm_is_the_same_earlier() -> None:
    early, late = _times(
        OnOff(50, rhythm=1, offset_s=7.0), OnOff(50, rhythm=1), until_s=500, seed=3
    )
    both = [np.histogram(one, np.arange(20, 480))[0] > 0 for one in (early + 7.0, late)]
    assert (both[0] == both[1]).mean() > 0.97


def test_recorded_times_once_or_again_and_again() -> None:
    times = np.array([0.5, 1.0, 1.0, 4.0])
    once, again = _times(Recorded.of(times), Recorded.of(times, repeat_s=5.0), until_s=12.0)
    assert once.tolist() == times.tolist()
    assert again.tolist() == [*times, *(times + 5), 10.5, 11.0, 11.0]


def test_a_recording_longer_than_the_buffer() -> None:
    times = np.linspace(0, 10, 200_000)
    (found,) = _times(Recorded.of(times), until_s=20)
    assert np.array_equal(found, times)


def test_self_similar_arrivals_burst_at_all_scales() -> None:
    (bursty,) = _times(self_similar(200, hurst=0.9, seed=2, block_s=256), until_s=256)
    assert len(bursty) == pytest.approx(51_200, abs=2)
    for bin_s in (0.1, 1.0, 8.0):
        counts = np.histogram(bursty, np.arange(0, 256, bin_s))[0]
        assert counts.var() > 3 * counts.mean(), "a Poisson stream has equal mean and variance"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Steady(-1), "a rate of -1 a second. Give zero or more."),
        (
            lambda: Alternating(1, ratio=0.5),
            "a stream that alternates by 0.5 every 10 s. "
            "Give a ratio of at least 1 and a period above 0.",
        ),
        (lambda: OnOff(1, idle_s=0), "bursts of 5 s with 0 s between. Give lengths above 0."),
        (
            lambda: Recorded.of(np.array([2.0, 1.0])),
            "a recording of 2 arrival times. Give at least one, none negative, in ascending order.",
        ),
        (
            lambda: Recorded.of(np.array([2.0]), repeat_s=1.0),
            "a recording of 2 s repeated every 1 s. Repeat it after its end.",
        ),
    ],
)
def test_what_cannot_arrive_is_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == message
