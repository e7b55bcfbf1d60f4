"""What was measured of nodes and of what they run: records from a node to whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class BatchMeasurement:
    """One micro-batch of a fragment."""

    fragment: str
    batch_id: int
    started_ms: int
    rows_in: int
    duration_ms: int
    state_rows: int
    watermark_ms: int | None
    state_bytes: int = 0

    @property
    def rows_per_s(self) -> float:
        """Rows read per second of work."""
        return 1_000 * self.rows_in / self.duration_ms if self.duration_ms else 0.0


@dataclass(frozen=True)
class FragmentStatus:
    """How a fragment is doing.

    Rows in and out are counted since the fragment first started, each once; ``rows_in_before`` are
    those that owners before the present one have read. Batches and the time it was busy are counted
    since it was started on its node. Rates and times are over the last batches; the backlog is what
    lies in its input channels and is in no batch yet. ``selectivity`` is rows out for a row
    in, ``cpu_ms`` the processor time it has had, as far as a node can tell its fragments apart, and
    ``cost_us`` the same for a row in; all since it was started on its node. Latency is from the
    moment the oldest rows behind a batch of results entered the system until the batch is out;
    None where no batch had any. ``latest_latency_s`` is that of the newest batch, None
    where that is long ago, and ``waiting_s`` how long the oldest row has been in the system that no
    finished batch has taken up. ``round_ms`` is how long the rounds take in which a light fragment
    is computed, ``batch_ms`` its part of that. ``state_bytes`` is the memory that its state takes;
    what a join of channels keeps lies in them and takes none. ``group_rows`` are the rows of each
    partition group that were new to a part of a join since it was started on its node.
    """

    fragment: str
    rows_in: int = 0
    rows_out: int = 0
    rows_in_per_s: float = 0.0
    batches: int = 0
    batch_ms: float = 0.0
    state_rows: int = 0
    watermark_ms: int | None = None
    is_finished: bool = False
    busy_ms: int = 0
    backlog_rows: int = 0
    selectivity: float | None = None
    cpu_ms: float = 0.0
    cost_us: float | None = None
    latency_p50_s: float | None = None
    latency_p99_s: float | None = None
    latest_latency_s: float | None = None
    waiting_s: float | None = None
    rows_in_before: int = 0
    round_ms: float = 0.0
    state_bytes: int = 0
    group_rows: tuple[int, ...] = ()

    @property
    def rows_in_here(self) -> int:
        """The rows read since it was started on its node."""
        return self.rows_in - self.rows_in_before

    def with_cost(self, cpu_ms: float) -> FragmentStatus:
        """The same with the processor time it has had."""
        rows = self.rows_in_here
        cost_us = round(1_000 * cpu_ms / rows, 3) if rows else None
        return replace(self, cpu_ms=round(cpu_ms, 1), cost_us=cost_us)


@dataclass(frozen=True)
class IntakeSample:
    """What was measured of an intake: the processor time it has had since it was started."""

    cpu_ms: float


UnitSample = FragmentStatus | IntakeSample
"""What was measured of something that a node runs."""


@dataclass(frozen=True)
class MeasuredUse:
    """The share of its cores that a node used before some time, of all that a sample says."""

    at_s: float
    utilisation: float = 0.0


@dataclass(frozen=True)
class NodeSample:
    """What a node measured of itself and of all that it runs, at one time.

    ``utilisation`` is the share of its cores that it used since the sample before, ``cpu_cores``
    the same in cores; intakes and fragments are there by name.
    """

    at_s: float
    cpu_cores: float = 0.0
    utilisation: float = 0.0
    memory_bytes: int = 0
    intakes: Mapping[str, IntakeSample] = field(default_factory=dict)
    fragments: Mapping[str, FragmentStatus] = field(default_factory=dict)

    def unit(self, name: str) -> UnitSample | None:
        """What was measured of a fragment or an intake, if it ran here.

        >>> NodeSample(1.0, intakes={"readings": IntakeSample(2.5)}).unit("readings")
        IntakeSample(cpu_ms=2.5)
        """
        return self.fragments.get(name) or self.intakes.get(name)
