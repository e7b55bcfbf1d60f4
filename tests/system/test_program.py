"""A system in a Python program, as the README shows it."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.control.program import RunningQuery


@pytest.mark.timeout(300)
def test_submitted_and_read_from_a_program() -> None:
    source = ps.generate.meters(homes=20, days=1)
    readings = ps.stream("readings", source=source, event_time="ts", lateness="2 min")
    hourly = (
        readings.window("1 hour")
        .group_by("home")
        .agg(readings=ps.count(), kwh=ps.sum("kwh"))
        .named("hourly")
        .in_groups(8, "home")
    )
    with ps.local(nodes=2) as system:
        query = system.submit(hourly, max_latency="5 s")
        rows = read(query)
        assert {node.state for node in system.status().nodes} == {"up"}
        shares = [read(query, groups) for groups in ("0-4", "5-7")]
    assert sum(row["readings"] for row in rows) == 20 * 48
    assert sorted(map(str, shares[0] + shares[1])) == sorted(map(str, rows))
    by_share = [{row["home"] for row in share} for share in shares]
    assert all(by_share) and by_share[0].isdisjoint(by_share[1])


@pytest.mark.timeout(300)
def test_several_flows_of_one_stream_without_a_with_block() -> None:
    source = ps.generate.meters(homes=20, days=1)
    readings = ps.stream("readings", source=source, event_time="ts", lateness="2 min")
    system = ps.local(nodes=1, on="inline")
    try:
        assert repr(system) == f"<LocalSystem {system.client.url}>"
        low = system.submit(readings.filter("kwh < 0.1").named("low"))
        # From the start: the stream may have ended by now.
        high = system.submit(readings.filter("kwh >= 0.1").named("high"), start="start")
        counts = [readings.window("1 day").agg(n=ps.count()).named("days")]
        made = system.submit(ps.deployment(*counts, name="totals"), start="start")
        assert len(low.to_pandas("60 s")) + len(high.to_pandas("60 s")) == 20 * 48
        assert repr(made) == f"<RunningDeployment totals: days at {system.client.url}>"
        with pytest.raises(ps.InputError, match="totals has no query day"):
            made["day"]
    finally:
        system.close()
        system.close()


def read(query: RunningQuery, groups: str | None = None) -> list[dict[str, object]]:
    batches = query.results(timeout="60 s", groups=groups)
    return [row for batch in batches for row in batch.to_pylist()]
