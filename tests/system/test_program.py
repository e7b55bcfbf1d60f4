"""A system in a Python program, as the README shows it."""

from __future__ import annotations

import pytest

import penstock as ps


@pytest.mark.timeout(300)
def test_submitted_and_read_from_a_program() -> None:
    source = ps.generate.meters(homes=20, days=1)
    readings = ps.stream("readings", source=source, event_time="ts", lateness="2 min")
    hourly = (
        readings.window("1 hour")
        .group_by("district")
        .agg(readings=ps.count(), kwh=ps.sum("kwh"))
        .named("hourly")
    )
    with ps.local(nodes=2) as system:
        query = system.submit(hourly, max_latency="5 s")
        rows = [row for batch in query.results(timeout="60 s") for row in batch.to_pylist()]
        assert {one["state"] for one in system.status()["nodes"]} == {"up"}
    assert sum(row["readings"] for row in rows) == 20 * 48
