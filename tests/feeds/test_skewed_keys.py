"""The b-model: keys as skewed as it says, whatever is read of them."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.feeds.skewed_keys import SkewedKeys, equal_keys


def test_reads_are_cut_anywhere() -> None:
    feed = SkewedKeys(rate_per_s=999, seconds=3, disorder_s=0.5)
    whole = feed.read(0, feed.size)
    assert whole.slice(700, 900).equals(feed.read(700, 1_600).combine_chunks())
    assert feed.due(1.0) == feed.size


@pytest.mark.parametrize("largest", [0, 1, 6, 7, 8])
def test_every_key_has_its_probability(largest: int) -> None:
    """Against the probabilities found by walking down the halves."""

    def probabilities(keys: int) -> list[float]:
        if keys == 1:
            return [1.0]
        larger = (keys + 1) // 2
        return [0.7 * probability for probability in probabilities(larger)] + [
            0.3 * probability for probability in probabilities(keys - larger)
        ]

    rows = 20_000
    feed = SkewedKeys(rate_per_s=rows, seconds=1, b=0.7, largest=largest)
    expected = rows * np.array(probabilities(largest + 1))
    found = np.bincount(feed.read(0, rows)["key"].to_numpy(), minlength=largest + 1)
    assert len(found) == largest + 1
    assert ((found - expected) ** 2 / expected).sum() < largest + 6 * np.sqrt(2 * largest + 1)
    same = sum(probability * probability for probability in probabilities(largest + 1))
    assert equal_keys(0.7, largest + 1) == pytest.approx(same)


def test_the_rate_is_even() -> None:
    feed = SkewedKeys(rate_per_s=300, seconds=2)
    times = feed.read(0, 600)["ts"].cast("int64").to_numpy()
    assert set(np.diff(times).tolist()) <= {3_333, 3_334}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"b": 0.4}, "b must be at least 0.5"),
        ({"rate_per_s": 0}, "the rate must be a number above 0"),
        ({"seconds": -1}, "length in seconds"),
        ({"largest": -1}, "keys from 0 to -1"),
    ],
)
def test_what_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SkewedKeys(**options)  # type: ignore[arg-type]
