"""The study of projections on real nodes: what can be told of it without any."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.kernels.engine_choice import light_fragments
from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse
from penstock.studies import live_projection
from penstock.studies.live_projection import Kept, Submitted, error
from penstock.studies.projection_load import queries, streams

NODES = ("n1", "n2")


def test_queries_are_light_different_and_some_overlap(tmp_path: Path) -> None:
    text = streams(NODES, 1_000, 100)
    asked = queries(NODES, 52)
    texts = {query.deployment() for query in asked}
    assert len(texts) == len({query.name for query in asked}) == 52
    parsed = [
        parse_deployment(text + query.deployment(), "q.yaml", tmp_path).network for query in asked
    ]
    assert all(
        bool(light_fragments(network, fuse(network))) != query.is_native
        for query, network in zip(asked, parsed, strict=True)
    )
    assert {query.node for query in asked} == set(NODES)
    alike = {(query.node, query.keys, query.window_s, query.results, query.least_bytes)
             for query in asked}  # fmt: skip
    assert len(alike) == 40, "one of four has the aggregate of another"


@pytest.mark.parametrize("course", [live_projection._QUICK, live_projection._FULL])
def test_at_least_thirty_are_submitted(course: live_projection.Course) -> None:
    assert course.submissions >= 30


def submitted(latency_error: float | None, load_error: float | None) -> Submitted:
    return Submitted(1, "q", "n1", 4.0, "light", 0, 0.4, 0.5, 0.45, load_error, 1.2, 1.0, 0.9,
                     latency_error, 5)  # fmt: skip


def test_errors_are_parts_of_what_was_measured() -> None:
    assert error(3.0, 2.0) == 0.5
    assert error(None, 2.0) is None and error(1.0, None) is None and error(1.0, 0.0) is None


def test_the_distribution_of_errors_is_told() -> None:
    found = [submitted(0.05, -0.2), submitted(-0.05, 0.3), submitted(0.5, None)] * 10
    rows = {row.quantity: row for row in live_projection._findings(found)}
    latency = rows["latency: |projected - measured| / measured, median"]
    assert (latency.ours, latency.agrees) == (0.05, True)
    assert rows["latency, worst"].ours == 0.5
    load = rows["load of the node: |projected - measured| / measured, median"]
    assert (load.ours, load.agrees) == (0.25, False)
    assert load.note.startswith("of 20;")


def test_limits_that_were_broken_are_counted() -> None:
    kept = [Kept("admitted", "a", 4.0, 1.0, True), Kept("with those refused", "a", 4.0, 9.0, False),
            Kept("with those refused", "b", 4.0, None, False)]  # fmt: skip
    rows = live_projection._admission_findings(kept, 1, True)
    assert [(row.ours, row.agrees) for row in rows] == [(1, True), (0, True), (2, True)]
    none = live_projection._admission_findings(kept[:1], 1, False)
    assert none[0].note == "none was refused" and not none[2].agrees
