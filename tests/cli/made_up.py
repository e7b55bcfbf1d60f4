"""Records that no run has measured, for tests of what is made from them."""

from __future__ import annotations

from pathlib import Path

from penstock.app.run_plan import RunPlan
from penstock.model.expressions import Column
from penstock.model.fragments import Fragment
from penstock.model.measurements import FragmentStatus
from penstock.model.network import Deployment, Network, Query
from penstock.model.operators import Filter, Input
from penstock.model.schema import Schema, Shape
from penstock.model.sources import GeneratorSource, Sink, Source, Stream
from penstock.place.fuse import fuse

SHAPE = Shape(Schema.parse("home string, is_heavy boolean"))
MOMENT_MS = 1_767_594_600_000  # 2026-01-05 06:30:00


def status(
    fragment: str,
    rows_in: int = 0,
    rows_out: int = 0,
    *,
    rate: float = 0.0,
    batches: int = 1,
    finished: bool = False,
) -> FragmentStatus:
    """A fragment's status with these counts."""
    return FragmentStatus(
        fragment, rows_in, rows_out, rate, batches, 120.0, 14_210, MOMENT_MS, finished
    )


def fragment(name: str, *inputs: str, queries: tuple[str, ...] = ()) -> Fragment:
    """A fragment without operators that reads ``inputs``."""
    return Fragment(name, inputs, (), name, queries=queries)


def network(*sinks: tuple[str, Sink | None], source: Source | None = None) -> Network:
    """Queries with these names and sinks, each a filter of one stream ``readings``."""
    chosen = source or GeneratorSource("meters", {"days": 1, "speedup": 600})
    return Network(
        (Stream("readings", chosen, SHAPE),),
        tuple(Filter(name, Input("readings", SHAPE), Column("is_heavy")) for name, _ in sinks),
        tuple(Query(name, name, sink) for name, sink in sinks),
    )


def plan(made: Network, folder: Path = Path("/state")) -> RunPlan:
    """The plan of a deployment called ``ami``."""
    return RunPlan(Deployment("ami", made), fuse(made), folder, 2, 1 << 30)
