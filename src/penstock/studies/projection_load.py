"""What ``penstock study live-projection`` submits: different queries over streams of packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.studies.seeds import rng_of

_KEYS: Sequence[str] = ("src", "dst", "protocol", "src, dst", "dst, protocol", "bytes % 100")
_SHOWN = {"bytes % 100": "bytes % 100 AS size"}
_WINDOWS_S: Sequence[tuple[int, int]] = ((1, 1), (2, 2), (3, 3), (2, 1), (4, 2))
_RESULTS: Sequence[str] = (
    "count(*) AS n",
    "count(*) AS n, sum(bytes) AS v",
    "avg(bytes) AS v, count(*) AS n",
    "max(bytes) AS v, min(bytes) AS w, count(*) AS n",
)
_LIMITS_S: Sequence[int] = (4, 6, 8)
_ALIKE = 4
"""One of so many queries has the aggregate of an earlier one."""
_NATIVE = 3
_NATIVE_LIMIT_S = 12
"""One of so many is a streaming query of its own, with this limit."""


@dataclass(frozen=True)
class PacketQuery:
    """A windowed aggregate over a stream, on a node, with a limit on its latency."""

    name: str
    stream: str
    node: str | None
    keys: str
    window_s: tuple[int, int]
    results: str
    least_bytes: int
    limit_s: int
    least_count: int = 0
    is_native: bool = False

    def deployment(self) -> str:
        """The query as a deployment file."""
        size, slide = self.window_s
        having = f" HAVING count(*) > {self.least_count}" if self.least_count else ""
        shown = _SHOWN.get(self.keys, self.keys)
        where = "" if self.node is None else f", on: {self.node}"
        where += ", engine: native" if self.is_native else ""
        return (
            f"queries:\n  {self.name}:\n"
            f'    {{sql: "SELECT {shown}, window.end AS at, {self.results} '
            f"FROM {self.stream} "
            f"WHERE bytes >= {self.least_bytes} "
            f"GROUP BY {self.keys}, window(ts, '{size} seconds', '{slide} seconds'){having}\", "
            f"max_latency: {self.limit_s}s{where}}}\n"
        )


def streams(nodes: Sequence[str], rate_per_s: int, hosts: int) -> str:
    """A stream of packets that comes in at each node, as a deployment file."""
    return "streams:\n" + "".join(
        f"  {stream_at(node)}:\n"
        f"    source: {{generate: packets, rate: {rate_per_s}, hosts: {hosts}, hurst: 0.55, "
        f"seed: {number}, speedup: 1}}\n"
        "    lateness: 0s\n"
        f"    on: {node}\n"
        for number, node in enumerate(nodes)
    )


def stream_at(node: str) -> str:
    """The stream that comes in at a node."""
    return f"packets_{node}"


def queries(nodes: Sequence[str], number: int, pinned: bool = True) -> list[PacketQuery]:
    """So many different queries, by turns over the streams of the nodes; always the same ones.

    >>> first, other = queries(["n1", "n2"], 8)[0], queries(["n1", "n2"], 8)[6]
    >>> first.keys == other.keys, first.window_s == other.window_s, other.least_count
    (True, True, 9)
    """
    found: list[PacketQuery] = []
    for turn in range(-(-number // len(nodes))):
        for at, node in enumerate(nodes):
            found.append(_query(node, at, turn, pinned))
    return found[:number]


def _query(node: str, at: int, turn: int, pinned: bool) -> PacketQuery:
    """The query of a node's turn; one of every few asks more of what an earlier one computes."""
    is_alike = turn % _ALIKE == _ALIKE - 1
    rng = rng_of("live-projection", at, turn - _ALIKE + 1 if is_alike else turn)
    keys = _KEYS[int(rng.integers(len(_KEYS)))]
    window_s = _WINDOWS_S[int(rng.integers(len(_WINDOWS_S)))]
    results = _RESULTS[int(rng.integers(len(_RESULTS)))]
    limit_s = _LIMITS_S[int(rng.integers(len(_LIMITS_S)))]
    is_native = not is_alike and turn % _NATIVE == _NATIVE - 1
    return PacketQuery(
        f"q{turn}_{at}",
        stream_at(node),
        node if pinned else None,
        keys,
        window_s,
        results,
        int(rng.integers(40, 200)),
        _NATIVE_LIMIT_S if is_native else limit_s,
        3 * turn if is_alike else 0,
        is_native,
    )
