"""Electricity meters: every home reports what it used, once a period, all week round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from penstock.errors import listed, suggestion
from penstock.feeds.counter import Draws, Integers, Reals
from penstock.feeds.generated import TIMESTAMP, US_PER_S, Generated, check, check_positive

Bursts = Literal["evening", "none"]

METERS_SCHEMA = pa.schema(
    [("ts", TIMESTAMP), ("home", pa.string()), ("district", pa.string()), ("kwh", pa.float64())]
)

_S_PER_DAY = 86_400
_MINUTES_PER_DAY = 1_440
_MINUTES_PER_WEEK = 7 * _MINUTES_PER_DAY
_US_PER_MINUTE = 60 * US_PER_S
# 1970-01-01 was a Thursday; the table of a week begins on Monday.
_MONDAY_TO_EPOCH_MINUTES = 3 * _MINUTES_PER_DAY

_MOST_HOMES = 1_000_000
_HOMES_PER_DISTRICT = 30
_TYPICAL_KW = 0.45
_SPREAD_OF_HOMES = 0.45  # standard deviation of the logarithm of a home's load
_SPREAD_OF_READINGS = 0.35  # the same for a reading around its home's profile
_ONE_HEAVY_HOME_IN = 40  # electric heating or a car
_HEAVY_FACTOR = 4.0
_NOISE_STEPS = 4_096


@dataclass(frozen=True, kw_only=True)
class Meters(Generated):
    """Readings of household electricity meters.

    Every home reports once in ``every_s`` seconds, exactly ``every_s`` apart, at its own moment of
    the period. What it reports follows a weekly profile with a morning peak and, unless ``bursts``
    is "none", a pronounced evening peak. The feed ends after ``days``, or never.

    >>> feed = Meters(homes=3, days=1)
    >>> feed.size
    144
    >>> feed.read(0, 3).column_names
    ['ts', 'home', 'district', 'kwh']
    >>> sorted(feed.read(0, 3)["home"].to_pylist())
    ['h0001', 'h0002', 'h0003']
    """

    homes: int = 300
    every_s: float = 1_800
    days: float | None = None
    bursts: Bursts = "evening"
    districts: int | None = None

    def __post_init__(self) -> None:
        check(
            1 <= self.homes <= _MOST_HOMES,
            f"meters need 1 to {_MOST_HOMES:,} homes; got {self.homes}",
        )
        check_positive("the period between readings", self.every_s)
        check(
            self._every_us >= self.homes,
            f"{self.homes} homes cannot each have a moment of their own in {self.every_s} seconds",
            "Allow at least a microsecond for every home.",
        )
        check(
            self.bursts in get_args(Bursts),
            f"meters have no bursts {self.bursts!r}; there are {listed(get_args(Bursts))}",
            suggestion(str(self.bursts), get_args(Bursts)),
        )
        check(
            1 <= self._district_count <= self.homes,
            f"meters need 1 to {self.homes} districts for {self.homes} homes; got {self.districts}",
        )
        self._check_days()
        super().__post_init__()

    def _check_days(self) -> None:
        if self.days is None:
            return
        check_positive("the number of days", self.days)
        check(
            self._periods(self.days) >= 1,
            f"{self.days} days are shorter than the {self.every_s} seconds between readings",
            "Generate more days or read more often.",
        )

    @property
    def schema(self) -> pa.Schema:
        """Event time, home, its district and the energy used in the period before."""
        return METERS_SCHEMA

    @property
    def size(self) -> int | None:
        """One row for every home and whole period; None without ``days``."""
        return None if self.days is None else self.homes * self._periods(self.days)

    @property
    def _every_us(self) -> int:
        return round(self.every_s * US_PER_S)

    @property
    def _district_count(self) -> int:
        if self.districts is not None:
            return self.districts
        return math.ceil(self.homes / _HOMES_PER_DISTRICT)

    def _periods(self, days: float) -> int:
        return round(days * _S_PER_DAY * US_PER_S) // self._every_us

    def _offsets_us(self, first: int, stop: int) -> Integers:
        # Homes take turns: the period is divided evenly among them.
        period, turn = np.divmod(np.arange(first, stop), self.homes)
        offsets_us: Integers = period * self._every_us + turn * self._every_us // self.homes
        return offsets_us

    def _count_before(self, offset_us: int) -> int:
        periods, rest_us = divmod(offset_us, self._every_us)
        # Turn k, at floor(k * every / homes), is before rest exactly if k * every < rest * homes.
        turns = -(-rest_us * self.homes // self._every_us)
        return periods * self.homes + turns

    def _rows(self, index: Integers, time_us: Integers) -> list[pa.Array]:
        home = _turns(self.homes, self.seed)[index % self.homes]
        names, districts = _names(self.homes, self._district_count)
        chosen = pa.array(home)
        return [
            pa.array(time_us).view(TIMESTAMP),
            names.take(chosen),
            districts.take(chosen),
            pa.array(self._kwh(index, home, time_us)),
        ]

    def _kwh(self, index: Integers, home: Integers, time_us: Integers) -> Reals:
        # Only table look-ups and products: their results have the same bits on every processor.
        minute = (time_us // _US_PER_MINUTE + _MONDAY_TO_EPOCH_MINUTES) % _MINUTES_PER_WEEK
        noise = Draws(self.seed, "meters.noise").below(_NOISE_STEPS, index)
        kwh = _week(self.bursts, self.every_s)[minute]
        kwh *= _loads(self.homes, self.seed)[home]
        kwh *= _noise()[noise]
        kwh *= 1_000.0
        return np.rint(kwh) / 1_000.0


@lru_cache(maxsize=8)
def _turns(homes: int, seed: int) -> Integers:
    """Which home reports at each turn: an arbitrary order, so that neighbours do not coincide."""
    return np.argsort(Draws(seed, "meters.turn").bits(np.arange(homes)), kind="stable")


@lru_cache(maxsize=8)
def _names(homes: int, districts: int) -> tuple[pa.Array, pa.Array]:
    """The name and the district of every home; districts are of equal size, give or take one."""
    home_digits, district_digits = max(4, len(str(homes))), max(2, len(str(districts)))
    members = [home * districts // homes + 1 for home in range(homes)]
    return (
        pa.array([f"h{home + 1:0{home_digits}d}" for home in range(homes)]),
        pa.array([f"d{district:0{district_digits}d}" for district in members]),
    )


@lru_cache(maxsize=8)
def _loads(homes: int, seed: int) -> Reals:
    """The mean load of every home in kW: lognormal, a few homes far above the others."""
    home = np.arange(homes)
    # Half a step keeps the quantile away from 0, where the logarithm would be infinite.
    quantile = Draws(seed, "meters.load").fraction(home) + 2.0**-54
    loads = _TYPICAL_KW * np.exp(_SPREAD_OF_HOMES * _normal(quantile))
    heavy = Draws(seed, "meters.heavy").below(_ONE_HEAVY_HOME_IN, home) == 0
    return _settled(np.where(heavy, loads * _HEAVY_FACTOR, loads))


def _normal(quantiles: Reals) -> Reals:
    """Quantiles of the normal law; SciPy would cost every process that reads meters 50 MB."""
    law = NormalDist()
    return np.array([law.inv_cdf(quantile) for quantile in quantiles.tolist()])


@lru_cache(maxsize=1)
def _noise() -> Reals:
    """Equally likely factors of a reading: quantiles of a lognormal law with mean 1."""
    quantiles = (np.arange(_NOISE_STEPS) + 0.5) / _NOISE_STEPS
    factors = np.exp(_SPREAD_OF_READINGS * _normal(quantiles))
    return _settled(factors / factors.mean())


@lru_cache(maxsize=8)
def _week(bursts: Bursts, every_s: float) -> Reals:
    """Energy in kWh used per kW of mean load in the period before every minute of the week."""
    hour = np.arange(_MINUTES_PER_DAY) / 60
    evening = 2.6 * _peak(hour, 19.0, 1.6) if bursts == "evening" else np.zeros_like(hour)
    weekday = 0.5 + 0.2 * _peak(hour, 13.0, 4.0) + 0.9 * _peak(hour, 7.5, 1.0) + evening
    weekend = 0.6 + 0.5 * _peak(hour, 13.0, 4.0) + 0.7 * _peak(hour, 9.5, 1.5) + evening
    week = np.concatenate([weekday] * 5 + [weekend] * 2)
    minutes = min(max(1, round(every_s / 60)), _MINUTES_PER_WEEK)
    used = np.concatenate([[0.0], np.cumsum(np.concatenate([week, week]))])
    end = np.arange(_MINUTES_PER_WEEK) + _MINUTES_PER_WEEK
    mean = (used[end] - used[end - minutes]) / minutes
    return _settled(mean / week.mean() * (every_s / 3_600))


def _peak(hour: Reals, centre: float, width: float) -> Reals:
    return np.exp(-(((hour - centre) / width) ** 2) / 2)


def _settled(values: Reals) -> Reals:
    """Values to nine digits, which hides in what the last bits of exp differ between processors."""
    return np.array([float(f"{value:.9g}") for value in values.tolist()])
