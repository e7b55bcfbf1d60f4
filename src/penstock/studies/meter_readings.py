"""Readings of many homes that report at other intervals for a while: recorded ones, or made up.

A home is a stretch of the recording of one house, and reports what that used in the minute before.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from penstock.errors import InputError
from penstock.feeds.generators import generator
from penstock.load.arrays import Ints

_BEGIN_S = 1_377_986_400
_HOUSES = 40
_APART_MIN = 7
"""Homes of one house are stretches of it that begin so far from each other."""
_COLUMNS = ("id", "at_s", "value", "property", "plug", "household", "house")


@dataclass(frozen=True)
class ReportingPhase:
    """For so many minutes every home reports that often."""

    minutes: int
    every_min: int


def recorded_watts(path: Path) -> Ints:
    """Whole watts by house and minute, of a recording of houses as DEBS 2014 has it, by minute.

    A minute that is missing is as the one before.
    """
    try:
        with gzip.open(path) as file:
            options = pacsv.ReadOptions(column_names=list(_COLUMNS))
            rows = pacsv.read_csv(file, options)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(
            f"{path} is no recording of meters: {error}",
            hint=f"Give a gzipped CSV file with the columns {', '.join(_COLUMNS)}.",
        ) from None
    at_s = rows["at_s"].to_numpy()
    minutes, houses = (at_s - at_s.min()) // 60, rows["house"].to_numpy()
    watts = np.full((houses.max() + 1, minutes.max() + 1), -1, dtype=np.int64)
    watts[houses, minutes] = np.rint(rows["value"].to_numpy())
    for minute in range(1, watts.shape[1]):
        missing = watts[:, minute] < 0
        watts[missing, minute] = watts[missing, minute - 1]
    return np.maximum(watts, 0)


def generated_watts() -> Ints:
    """The same of made-up houses, where there is no recording."""
    feed = generator("meters", {"homes": _HOUSES, "every": "1min", "days": 0.7})
    assert feed.size is not None
    rows = feed.read(0, feed.size).sort_by([("home", "ascending"), ("ts", "ascending")])
    watts = np.rint(rows["kwh"].to_numpy() * 60_000).astype(np.int64)
    return watts[: len(watts) // _HOUSES * _HOUSES].reshape(_HOUSES, -1)


def write_readings(path: Path, watts: Ints, homes: int, phases: Sequence[ReportingPhase]) -> int:
    """Writes the readings of all phases in the order of their times; how many."""
    count = 0
    schema = pa.schema(
        [("ts", pa.timestamp("us", tz="UTC")), ("home", pa.string()), ("watts", pa.int64())]
    )
    names = np.array([f"home-{number}" for number in range(homes)])
    with pq.ParquetWriter(path, schema) as writer:
        for minute, every_min in _minutes(phases):
            reporting = np.arange((-minute) % every_min, homes, every_min)
            if not reporting.size:
                continue
            seconds = reporting * 37 % 60
            order = np.argsort(seconds, kind="stable")
            reporting, seconds = reporting[order], seconds[order]
            offset = reporting // len(watts) * _APART_MIN
            measured = watts[reporting % len(watts), (minute + offset) % watts.shape[1]]
            ts_us = (_BEGIN_S + 60 * minute + seconds) * 1_000_000
            columns = [pa.array(ts_us).cast(schema.field("ts").type), names[reporting], measured]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=10_000)
            count += len(reporting)
    return count


def _minutes(phases: Sequence[ReportingPhase]) -> Iterator[tuple[int, int]]:
    """Every minute, with how often homes report then."""
    minute = 0
    for phase in phases:
        for _ in range(phase.minutes):
            yield minute, phase.every_min
            minute += 1
