"""What is known about rates, and how fast event time passes, before anything has run."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.feeds.generators import pace_of, paced_rate_per_s
from penstock.model.network import Network
from penstock.model.sources import GeneratorSource, ReplaySource, Stream


def known_rates(network: Network) -> dict[str, float]:
    """The rates of streams whose generators keep to one, and the mean rates of paced recordings."""
    rates = {stream.name: _rate_per_s(stream) for stream in network.streams}
    return {name: rate for name, rate in rates.items() if rate is not None}


def known_paces(network: Network) -> dict[str, float]:
    """How many seconds of event time pass in a second, for recorded and generated streams."""
    paces = {stream.name: _pace(stream) for stream in network.streams}
    return {name: pace for name, pace in paces.items() if pace is not None}


def _pace(stream: Stream) -> float | None:
    match stream.source:
        case GeneratorSource(options=options):
            return pace_of(options)
        case ReplaySource(speedup=speedup):
            return speedup
        case _:
            return None


def event_rates(network: Network) -> dict[str, float]:
    """Rows per second of event time, of the streams that say so: however fast they are played."""
    rates = {stream.name: _event_rate_per_s(stream) for stream in network.streams}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _event_rate_per_s(stream: Stream) -> float | None:
    match stream.source:
        case GeneratorSource(generator=generator, options=options):
            return paced_rate_per_s(generator, {**options, "speedup": 1})
        case ReplaySource(format="parquet"):
            return _recorded_rate_per_s(stream, 1.0)
        case _:
            return None


def _rate_per_s(stream: Stream) -> float | None:
    match stream.source:
        case GeneratorSource(generator=generator, options=options):
            return paced_rate_per_s(generator, options)
        case ReplaySource(format="parquet", speedup=float(speedup)):
            return _recorded_rate_per_s(stream, speedup)
        case _:
            return None


def _recorded_rate_per_s(stream: Stream, speedup: float) -> float | None:
    """The mean rate of a Parquet file, from what it says about itself without reading its rows."""
    assert isinstance(stream.source, ReplaySource)
    event_time = stream.shape.event_time
    try:
        file = pq.ParquetFile(stream.source.path)
    except (OSError, pa.ArrowException):
        return None  # Whoever reads it will say what is wrong with it.
    with file:
        span_s = _span_s(file, event_time)
        return speedup * file.metadata.num_rows / span_s if span_s else None


def _span_s(file: pq.ParquetFile, event_time: str | None) -> float | None:
    """The time between the first and the last row, where the file says it."""
    names = file.schema_arrow.names
    if event_time not in names:
        return None
    at = names.index(event_time)
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    # With nested columns, columns are counted otherwise.
    known = [group.column(at).statistics for group in groups if group.num_columns == len(names)]
    told = [column for column in known if column is not None and column.has_min_max]
    is_time = pa.types.is_timestamp(file.schema_arrow.field(at).type)
    if not is_time or not told or len(told) < len(groups):
        return None
    span: timedelta = max(column.max for column in told) - min(column.min for column in told)
    return span.total_seconds()
