"""Meters: every home once a period, a day with its peaks, homes that differ."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.errors import InputError
from penstock.feeds.meters import Meters

WEEK = Meters(homes=300, days=7, seed=5, disorder_s=120)
ROWS = WEEK.read(0, WEEK.size or 0)


def mean_by_hour(rows: pa.Table, days: set[int]) -> np.ndarray:
    day = pc.day_of_week(rows["ts"])
    chosen = rows.filter(pc.is_in(day, pa.array(sorted(days))))
    hour, kwh = pc.hour(chosen["ts"]).to_numpy(), chosen["kwh"].to_numpy()
    return np.bincount(hour, kwh) / np.bincount(hour)


def test_one_reading_for_every_home_and_period() -> None:
    assert ROWS.num_rows == 300 * 7 * 48 == WEEK.size
    times_us = np.stack(
        [
            np.sort(part["ts"].cast(pa.int64()).to_numpy())
            for part in (
                ROWS.filter(pc.equal(ROWS["home"], f"h{home:04d}")) for home in range(1, 301)
            )
        ]
    )
    assert (np.diff(times_us, axis=1) == 1_800_000_000).all()
    # Homes are spread over the period, and not in the order of their names.
    assert len(set(times_us[:, 0].tolist())) == 300
    assert (np.diff(times_us[:, 0]) < 0).sum() > 100


def test_names_and_districts() -> None:
    homes = ROWS.group_by(["home", "district"]).aggregate([]).sort_by("home")
    assert homes.num_rows == 300
    assert homes["home"][0].as_py() == "h0001" and homes["home"][-1].as_py() == "h0300"
    sizes = homes.group_by("district").aggregate([("home", "count")]).sort_by("district")
    assert sizes["district"].to_pylist() == [f"d{number:02d}" for number in range(1, 11)]
    assert sizes["home_count"].to_pylist() == [30] * 10


def test_more_homes_than_four_digits() -> None:
    names = Meters(homes=12_345, days=1, districts=100).read(0, 12_345)
    assert min(names["home"].to_pylist()) == "h00001"
    assert max(names["home"].to_pylist()) == "h12345"
    assert max(names["district"].to_pylist()) == "d100"


def test_amounts_are_plausible() -> None:
    kwh = ROWS["kwh"].to_numpy()
    assert kwh.min() >= 0
    assert 0.15 < kwh.mean() < 0.4
    assert (np.abs(kwh * 1_000 - np.rint(kwh * 1_000)) < 1e-9).all()


def test_evening_peak() -> None:
    weekday = mean_by_hour(ROWS, {0, 1, 2, 3, 4})
    assert weekday.argmax() in (18, 19)
    assert weekday[19] > 4 * weekday[3]
    assert weekday[7] > 1.3 * weekday[10]


def test_no_evening_peak_without_bursts() -> None:
    calm = Meters(homes=300, days=5, seed=5, bursts="none")
    weekday = mean_by_hour(calm.read(0, calm.size or 0), {0, 1, 2, 3, 4})
    assert weekday.argmax() == 7
    assert weekday[19] < 1.3 * weekday[3]


def test_weekends_rise_later() -> None:
    weekday, weekend = mean_by_hour(ROWS, {0, 1, 2, 3, 4}), mean_by_hour(ROWS, {5, 6})
    assert weekend[7] < weekday[7]
    assert weekend[13] > 1.3 * weekday[13]


def test_some_homes_are_heavy() -> None:
    used = ROWS.group_by("home").aggregate([("kwh", "sum")])["kwh_sum"].to_numpy()
    assert 2 <= (used > 4 * np.median(used)).sum() <= 20
    assert 0.3 < np.log(used).std() < 0.8


def test_a_day_uses_the_same_energy_however_often_it_is_read() -> None:
    def used(every_s: float) -> float:
        feed = Meters(homes=200, days=7, every_s=every_s)
        return float(pc.sum(feed.read(0, feed.size or 0)["kwh"]).as_py())

    assert used(900) == pytest.approx(used(3_600), rel=0.02)
    assert used(86_400) == pytest.approx(used(3_600), rel=0.03)


def test_rows_never_change() -> None:
    feed = Meters(homes=300, days=1, seed=7, disorder_s=120)
    found = feed.read(1_000, 1_003).to_pylist()
    assert [", ".join(map(str, row.values())) for row in found] == [
        "2026-01-05 01:39:00+00:00, h0016, d01, 0.027",
        "2026-01-05 01:40:18+00:00, h0239, d08, 0.079",
        "2026-01-05 01:39:42+00:00, h0136, d05, 0.045",
    ]


def test_days_may_be_parts_of_days() -> None:
    assert Meters(homes=10, days=0.5).size == 240


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"homes": 0}, "meters need 1 to 1,000,000 homes; got 0"),
        ({"every_s": 0}, "the period between readings must be a number above 0; got 0"),
        (
            {"homes": 2_000, "every_s": 0.001},
            "2000 homes cannot each have a moment of their own in 0.001 seconds. "
            "Allow at least a microsecond for every home.",
        ),
        (
            {"bursts": "evenings"},
            "meters have no bursts 'evenings'; there are evening, none. Did you mean evening?",
        ),
        ({"districts": 0}, "meters need 1 to 300 districts for 300 homes; got 0"),
        ({"districts": 301}, "meters need 1 to 300 districts for 300 homes; got 301"),
        ({"days": -1}, "the number of days must be a number above 0; got -1"),
        (
            {"days": 0.01},
            "0.01 days are shorter than the 1800 seconds between readings. "
            "Generate more days or read more often.",
        ),
    ],
)
def test_what_cannot_be_metered(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        Meters(**{"days": 1, **options})
    assert str(error.value) == message
