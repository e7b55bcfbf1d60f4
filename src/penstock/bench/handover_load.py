"""What moves in ``penstock bench handover``, what runs beside it, and what keeps nodes busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.bench.flow import put_file

RATE_PER_S = 2_000
NODES = ("n1", "n2")
MOVED = "sessions"
BESIDE = ("beside_n1", "beside_n2")
"""On each node, a query over the same stream that stays where it is."""
_BESIDE_MODULI = (97, 89)
_FILL_FILES = 20
_BEGIN_US = 1_800_000_000_000_000
_CHAIN = 16
"""How often a row of the burden is hashed."""


class Readings:
    """Homes in turn, 2,000 rows a second, each again when its session is long over.

    The sessions that are open at a time are as many as wanted: a session lasts until its home has
    been silent for as long as that many rows take.
    """

    def __init__(self, folder: Path, sessions: int) -> None:
        self._folder = folder
        self._sessions = sessions
        self._rows = 0
        self._files = 0

    @property
    def gap_s(self) -> float:
        """How long a home is silent before its session ends."""
        return self._sessions / RATE_PER_S

    def fill(self) -> None:
        """The rows of all the sessions that are open, at once."""
        for _ in range(_FILL_FILES):
            self.give(self.gap_s / _FILL_FILES)

    def give(self, seconds: float) -> None:
        """A file of what comes in so many seconds."""
        count = max(1, round(seconds * RATE_PER_S))
        numbers = np.arange(self._rows, self._rows + count)
        self._rows += count
        self._files += 1
        times = _BEGIN_US + numbers * 1_000_000 // RATE_PER_S
        rows = {
            "ts": pa.array(times, pa.timestamp("us")),
            "home": pa.array(numbers % (2 * self._sessions), pa.int64()),
            "kwh": pa.array(numbers % 7 / 4.0),
        }
        put_file(self._folder, self._files, pa.table(rows))


@dataclass
class Burden:
    """Rows for a query that only costs processor time, on each node as many as it takes.

    After every look, the rows a second are put in proportion to what is missing.
    """

    folders: Mapping[str, Path]
    wanted: float
    rate_per_s: dict[str, float] = field(default_factory=dict)
    _files: int = 0

    def __post_init__(self) -> None:
        self.rate_per_s = dict.fromkeys(self.folders, 20_000.0)

    def give(self, seconds: float) -> None:
        """A file for every node."""
        self._files += 1
        for node, folder in self.folders.items():
            count = max(1, round(seconds * self.rate_per_s[node]))
            put_file(folder, self._files, pa.table({"n": np.arange(count)}))

    def steer(self, utilisation: Mapping[str, float]) -> None:
        """Goes half of the way to the rate at which nodes would be as busy as wanted."""
        for node, rate in self.rate_per_s.items():
            missing = self.wanted / max(0.05, utilisation[node])
            self.rate_per_s[node] = rate * min(2.0, max(0.5, (1 + missing) / 2))

    def is_reached(self, utilisation: Mapping[str, float]) -> bool:
        """Whether every node is as busy as wanted, within a tenth of a core."""
        return all(abs(utilisation[node] - self.wanted) <= 0.1 for node in self.folders)


def deployment(folder: Path, gap_s: float) -> str:
    """The sessions, a filter of the same stream on each node, and the burden of each node."""
    beside = "".join(
        f"  {name}:\n"
        f"    sql: SELECT ts, home FROM readings WHERE home % {modulus} = 0\n"
        f"    on: {node}\n"
        for node, name, modulus in zip(NODES, BESIDE, _BESIDE_MODULI, strict=True)
    )
    burden = "".join(
        f"  burden_{node}:\n"
        f"    sql: SELECT n FROM work_{node} WHERE {_hashes()} < '00'\n"
        f"    on: {node}\n"
        for node in NODES
    )
    work = "".join(
        f"  work_{node}:\n    source: {_source(folder / f'work_{node}')}\n    schema: n bigint\n"
        for node in NODES
    )
    return (
        "streams:\n  readings:\n"
        f"    source: {_source(folder / 'readings')}\n"
        "    schema: ts timestamp, home bigint, kwh double\n"
        f"    event_time: ts\n    lateness: 0s\n{work}"
        f"queries:\n  {MOVED}:\n"
        "    sql: SELECT home, session_window.start AS since, sum(kwh) AS kwh, count(*) AS n"
        f" FROM readings GROUP BY home, session_window(ts, '{gap_s:g} seconds')\n"
        f"{beside}{burden}"
    )


def _source(folder: Path) -> str:
    return f"{{directory: {folder}, format: parquet, pattern: '*.parquet'}}"


def _hashes() -> str:
    text = "CAST(n AS string)"
    for _ in range(_CHAIN):
        text = f"md5({text})"
    return text
