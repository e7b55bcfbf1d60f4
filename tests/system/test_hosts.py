"""Nodes that are not processes of their own: threads of one, and workers of a Spark cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

import penstock as ps
from penstock.control.home import Home
from penstock.control.program import RunningSystem
from penstock.spark.standalone import MASTER, StandaloneCluster
from system.under_test import Rows, UnderTest
from waiting import until

HOMES = 20
# Hours of meters, each in little more than a second.
METERS = f"""
streams:
  readings:
    source: {{generate: meters, homes: {HOMES}, speedup: 2880}}
    lateness: 2min
queries:
  hourly:
    sql: >
      SELECT home, window.end AS at, count(*) AS n
      FROM readings GROUP BY home, window(ts, '1 hour')
"""
HOURS_AFTER = 3


def moved_once(system: RunningSystem) -> None:
    """Moves a query between the nodes, and looks whether it counts every reading once."""
    # An hour in little more than a second.
    source = ps.generate.meters(homes=HOMES, speedup=2_880)
    readings = ps.stream("readings", source=source, event_time="ts", lateness="2 min")
    window = readings.window("1 hour").group_by("home")
    hourly = window.agg(n=ps.count()).named("hourly")
    query = system.submit(hourly, max_latency="2 s")
    batches = query.results(timeout="120 s")
    counted = Counter(counts_of(next(batches)))
    moved = query.move(other_node(system))
    assert moved.state == "done", moved.error
    before = len({at for _, at, _ in counted})
    while len({at for _, at, _ in counted}) < before + HOURS_AFTER:
        counted.update(counts_of(next(batches)))
    assert set(counted.values()) == {1}, "nothing comes twice"
    hours = sorted({at for _, at, _ in counted})
    homes = {home for home, _, _ in counted}
    assert len(homes) == HOMES
    whole = {(home, at, 2) for home in homes for at in hours[1:-1]}
    assert whole <= set(counted), "nothing is lost"


def counts_of(rows: pa.Table) -> Iterator[tuple[str, datetime, int]]:
    return ((row["home"], row["window_end"], row["n"]) for row in rows.to_pylist())


def other_node(system: RunningSystem) -> str:
    known = {fragment.name: fragment.node for fragment in system.status().fragments}
    return "n2" if known["hourly"] == "n1" else "n1"


def heard(system: RunningSystem) -> dict[str, set[str]]:
    return {node.name: set(node.heard) for node in system.status().nodes}


def java_below(pid: int) -> list[psutil.Process]:
    below = psutil.Process(pid).children(recursive=True)
    return [one for one in below if one.name() == "java"]


def working_in(folder: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(folder):
                yield process
        except psutil.Error:
            continue


@pytest.mark.timeout(300)
def test_nodes_in_one_process(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    with ps.local(nodes=2, home=home.path, on="inline") as system:
        assert {node.pid for node in system.status().nodes} == {home.address().pid}
        assert len(java_below(home.address().pid)) == 1
        moved_once(system)
        until(lambda: heard(system) == {"n1": {"n2"}, "n2": {"n1"}}, 60, lambda: heard(system))


@pytest.mark.soak  # five Java processes take two cores a while to start
@pytest.mark.timeout(300)
def test_nodes_on_a_spark_cluster(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    cluster = home.path / "cluster"
    with ps.local(nodes=2, home=home.path, on="cluster") as system:
        processes = StandaloneCluster(cluster, home.spark_settings).running()
        assert set(processes) == {MASTER, "n1", "n2"}
        for name in ("n1", "n2"):
            (executor,) = working_in(cluster / name)
            assert "org.apache.spark.executor.CoarseGrainedExecutorBackend" in executor.cmdline()
        moved_once(system)
        assert all(node.utilisation > 0 for node in system.status().nodes)
    assert not list(working_in(cluster))
    assert not any(process.is_running() for process in processes.values()), "nothing of it is left"


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_spark_cluster_loses_its_controller_and_its_master(tmp_path: Path) -> None:
    system = UnderTest(tmp_path, 2, host="cluster")
    try:
        cluster = StandaloneCluster(system.home.path / "cluster", system.home.spark_settings)
        system.submit("meters", METERS)
        results_go_on(system)
        before = pids_of(cluster)
        system.kill_controller()
        results_go_on(system)
        system.restart_controller()
        results_go_on(system)
        assert pids_of(cluster) == before, "the next controller finds what there is"

        epoch = system.epoch_of("hourly")
        cluster.running()[MASTER].kill()
        until(lambda: pids_of(cluster).get(MASTER, before[MASTER]) != before[MASTER], 120)
        until(lambda: system.epoch_of("hourly") > epoch, 240, "it has a new owner")
        until(lambda: system.is_up("hourly"), 240, "which runs it")
        results_go_on(system)
        counted_once(system.rows("hourly"))
    finally:
        system.stop()


def results_go_on(system: UnderTest) -> None:
    seen = system.count("hourly")
    until(lambda: system.count("hourly") > seen, 120, "more results")


def pids_of(cluster: StandaloneCluster) -> dict[str, int]:
    return {name: process.pid for name, process in cluster.running().items()}


def counted_once(rows: Rows) -> None:
    """Both readings of every home and hour but the first, and no row twice."""
    assert set(rows.values()) == {1}
    hours = sorted({str(at) for _, at, _ in rows})
    homes = {home for home, _, _ in rows}
    assert len(homes) == HOMES
    assert {(home, at, "2") for home in homes for at in hours[1:-1]} <= set(rows)
