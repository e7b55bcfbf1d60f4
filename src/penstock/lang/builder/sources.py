"""Sources of streams, as in ``ps.sources.directory("arriving", "csv")``; nothing is opened."""

from __future__ import annotations

from pathlib import Path

from penstock.lang.deployment.locations import client_file, complete_path, expanded, file_format
from penstock.model.sources import CsvLayout, DirectorySource, KafkaSource, ReplaySource


def directory(
    path: str | Path,
    format: str = "",
    *,
    pattern: str = "*",
    finished: bool = False,
    delimiter: str = ",",
    header: bool = True,
    null: str = "",
) -> DirectorySource:
    """Files that arrive in a directory; ``finished`` if no more will come.

    The last three settings are about csv files: ``null`` is how a missing value is written.

    >>> directory("/data/in", pattern="*.csv").format
    'csv'
    """
    known = file_format(format, pattern, f"directory {path}")
    place = complete_path(str(path), Path.cwd())
    return DirectorySource(place, known, CsvLayout(delimiter, header, null), pattern, finished)


def replay(
    path: str | Path,
    format: str = "",
    *,
    speedup: float | None = None,
    delimiter: str = ",",
    header: bool = True,
    null: str = "",
) -> ReplaySource:
    """A recorded file, ``speedup`` times as fast as it was recorded, or all at once.

    The last three settings are about csv files, as in :func:`directory`.

    >>> replay("/data/day.csv.gz", speedup=60).format
    'csv'
    """
    known = file_format(format, str(path), f"replay of {path}")
    place = complete_path(str(path), Path.cwd())
    return ReplaySource(place, known, CsvLayout(delimiter, header, null), speedup)


def kafka(
    brokers: str, topic: str, *, finished: bool = False, client: str | Path | None = None
) -> KafkaSource:
    """The records of a Kafka topic; ``finished`` to stop at its present end.

    ``client`` is a file with settings of librdkafka, one ``name=value`` a line, such as how to
    log in.
    """
    return KafkaSource(expanded(brokers), topic, finished, client_file(client))
