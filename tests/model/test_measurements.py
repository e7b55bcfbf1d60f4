"""Estimates and measurements."""

import pytest

from penstock.errors import InputError
from penstock.model.estimates import OperatorEstimate
from penstock.model.measurements import BatchMeasurement


def batch(rows_in: int, duration_ms: int) -> BatchMeasurement:
    return BatchMeasurement("f", 0, 0, rows_in, duration_ms, 0, None)


def test_the_rate_of_a_batch() -> None:
    assert batch(500, 250).rows_per_s == 2_000
    assert batch(500, 0).rows_per_s == 0


@pytest.mark.parametrize("name", ["cost_us", "rate_per_s", "selectivity", "load"])
@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_an_estimate_is_not_below_zero(name: str, value: float) -> None:
    with pytest.raises(InputError) as caught:
        OperatorEstimate(**{name: value})
    assert str(caught.value) == f"an estimate with {name} {value}. Give zero or more."
