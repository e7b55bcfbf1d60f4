"""Recent rates."""

from cli.made_up import status
from penstock.app.rates import Rates


def rate(rates: Rates, rows_in: int, now_s: float) -> float:
    return rates.recent([status("q", rows_in)], now_s)[0].rows_in_per_s


def test_a_rate_needs_two_moments() -> None:
    rates = Rates()
    assert rate(rates, 100, 10.0) == 0.0
    assert rate(rates, 300, 12.0) == 100.0


def test_it_falls_to_zero_when_nothing_comes() -> None:
    rates = Rates(window_s=5)
    for second in range(20):
        last = rate(rates, min(second, 10) * 100, float(second))
    assert last == 0.0


def test_it_covers_the_whole_window() -> None:
    rates = Rates(window_s=5)
    shown = [rate(rates, second * 100, float(second)) for second in range(1, 20)]
    assert shown[1:] == [100.0] * 18
