"""What was measured: the same records, whether a run is simulated or real."""

from __future__ import annotations

from dataclasses import dataclass, replace


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

    @property
    def rows_per_s(self) -> float:
        """Rows read per second of work."""
        return 1_000 * self.rows_in / self.duration_ms if self.duration_ms else 0.0


@dataclass(frozen=True)
class FragmentStatus:
    """How a fragment is doing.

    Rows out are counted since the fragment first started; rows in, batches and the time it was busy
    since it was started on its node. Rates and times are over the last batches; the backlog is
    what lies in its input channels and is in no batch yet. ``selectivity`` is rows out for a row
    in, ``cpu_ms`` the processor time it has had, as far as a node can tell its fragments apart, and
    ``cost_us`` the same for a row in; all since it was started on its node. Latency is from the
    moment the oldest rows behind a batch of results entered the system until the batch is out;
    None where no batch had any.
    """

    fragment: str
    rows_in: int
    rows_out: int
    rows_in_per_s: float
    batches: int
    batch_ms: float
    state_rows: int
    watermark_ms: int | None
    is_finished: bool
    busy_ms: int = 0
    backlog_rows: int = 0
    selectivity: float | None = None
    cpu_ms: float = 0.0
    cost_us: float | None = None
    latency_p50_s: float | None = None
    latency_p99_s: float | None = None

    def with_cost(self, cpu_ms: float) -> FragmentStatus:
        """The same with the processor time it has had."""
        cost_us = round(1_000 * cpu_ms / self.rows_in, 3) if self.rows_in else None
        return replace(self, cpu_ms=round(cpu_ms, 1), cost_us=cost_us)
