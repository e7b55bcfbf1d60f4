"""Chains of windows and joins in one bundle: a link follows when the one before has given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.files import write_files
from penstock.channels.manifest import END_OF_TIME_US
from penstock.channels.writer import Writer
from penstock.kernels.planning import LightPlan, plan_fragment
from penstock.kernels.window_plan import NotLight
from penstock.lang.deployment import parse_deployment
from penstock.model.fragments import Fragment
from penstock.place.fuse import fuse
from penstock.spark.bundles.bundle import Bundle, Delivery
from penstock.spark.bundles.job import RoundJob

DEPLOYMENT = """
streams:
  s:
    source: {directory: in, format: csv}
    schema: ts timestamp, k string, v bigint
    event_time: ts
    lateness: 0s
queries:
  counts: "SELECT k, window.end AS at, sum(v) AS v FROM s GROUP BY k, window(ts, '10 seconds')"
  means: |
    SELECT k, window.end AS at, avg(v) AS v
    FROM counts GROUP BY k, window(at, '1 minute', '10 seconds')
  peaks: |
    SELECT c.k, c.at, c.v, m.v AS mean FROM counts c JOIN means m
    ON c.k = m.k AND m.at BETWEEN c.at AND c.at + INTERVAL 10 SECONDS WHERE c.v > 1.1 * m.v
  loud: |
    SELECT upper(k) AS k, window.end AS at, count(*) AS n
    FROM peaks GROUP BY upper(k), window(at, '2 minutes')
"""
# By hand: what the chain gives over the finished input. A window's row counts at its end.
PLAIN = """
WITH counts AS (
  SELECT k, time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS ended, sum(v)::BIGINT AS v
  FROM s GROUP BY 1, 2),
starts AS (SELECT DISTINCT ended FROM (
  SELECT unnest(generate_series(min(ended) - INTERVAL 2 MINUTES, max(ended) + INTERVAL 2 MINUTES,
                INTERVAL 10 SECONDS)) AS ended FROM counts)),
means AS (
  SELECT k, w.ended + INTERVAL 1 MINUTE AS ended, avg(v) AS v FROM counts c JOIN starts w
  ON c.ended >= w.ended AND c.ended < w.ended + INTERVAL 1 MINUTE GROUP BY k, w.ended),
peaks AS (
  SELECT c.k, c.ended FROM counts c JOIN means m
  ON c.k = m.k AND m.ended BETWEEN c.ended AND c.ended + INTERVAL 10 SECONDS WHERE c.v > 1.1 * m.v)
SELECT upper(k) AS k, time_bucket(INTERVAL 2 MINUTES, ended) + INTERVAL 2 MINUTES AS ended,
  count(*) AS n
FROM peaks GROUP BY 1, 2
"""
STEPS = ("claimed", "computed", "joined", "composed", "committed", "delivered")


class Died(BaseException):
    """Stands for the end of a process: whatever it had in memory is gone."""


@pytest.fixture(scope="module")
def chain() -> dict[str, tuple[Fragment, LightPlan]]:
    """The fragments of the deployment and how kernels run them, each after those it reads."""
    found = {}
    for fragment in fuse(parse_deployment(DEPLOYMENT, "s.yaml", Path()).network):
        plan = plan_fragment(fragment)
        assert not isinstance(plan, NotLight), plan
        found[fragment.name] = (fragment, plan)
    assert list(found) == ["counts", "means", "peaks", "loud"]
    return found


def rows_of_batch(number: int) -> pa.Table:
    random = Random(number)
    first_us = 1_700_000_000_000_000 + number * 40_000_000
    times = sorted(first_us + random.randrange(40_000_000) for _ in range(60))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": [random.choice("abc") for _ in times],
            "v": pa.array([random.randrange(100) for _ in times], pa.int64()),
        }
    )


class Links:
    """Bundles that share a folder, with a channel for the input and one for each result."""

    def __init__(self, session: SparkSession, folder: Path, chain, batches: int = 12) -> None:
        self._session, self._folder, self._chain = session, folder, chain
        self._given, self._batches, self._names = count(), batches, count()
        self._input = Writer(self.channel("s"), 1)
        for _, plan in chain.values():
            for stream in plan.streams:
                self.channel(stream).register("everything")
        self._writers: dict[str, Writer] = {}

    def channel(self, name: str) -> Channel:
        return Channel.open(self._folder / "channels" / name)

    def give(self) -> bool:
        """One more batch of the input; whether it was not the last one."""
        number = next(self._given)
        rows = rows_of_batch(number)
        files = write_files(rows, self._input, number)
        until_us = 1_700_000_000_000_000 + (number + 1) * 40_000_000
        is_last = number + 1 == self._batches
        self._input.commit(number, files, until_us, ended=is_last)
        return not is_last

    def bundle(self, epoch: int, on_step: Callable[[str], None] = lambda name: None) -> Bundle:
        bundle = Bundle(
            self._session,
            self._folder / "logs",
            f"log_{next(self._names)}",
            lambda name: self._folder / "claims" / name,
            self.channel,
            lambda name: self._folder / "runs" / name,
            lambda whole: self._folder / "groups" / whole,
            deliver=self._take,
            on_step=on_step,
        )
        self._writers = {name: Writer(self.channel(name), epoch) for name in self._chain}
        for _, plan in self._chain.values():
            bundle.add(plan, epoch)
        return bundle

    def _take(self, deliveries: Sequence[Delivery]) -> dict[int, BaseException]:
        for delivery in deliveries:
            running, given = delivery.running, delivery.given
            writer = self._writers[running.member.name]
            if writer.last is not None and given.batch_id <= writer.last.batch_id:
                continue
            files = write_files(given.rows, writer, given.batch_id) if given.rows.num_rows else []
            fragment = self._chain[running.member.name][0]
            time_us = min(running.watermark_us, END_OF_TIME_US) - fragment.delay_us
            writer.commit(given.batch_id, files, time_us, ended=running.ended)
        return {}

    def result(self) -> Counter[tuple[object, ...]]:
        last = self.channel("loud").last()
        assert last is not None and last.ended
        channel = self.channel("loud")
        return Counter(
            tuple(row.values())
            for manifest in channel.newer(0)
            for file in manifest.files
            for row in channel.rows_of(file, ["k", "at", "n"]).to_pylist()
        )


@pytest.fixture(scope="module")
def expected() -> Counter[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("s", pa.concat_tables([rows_of_batch(n) for n in range(12)]))
        found = connection.sql(PLAIN).to_arrow_table().to_pylist()
    assert len(found) >= 10
    return Counter(tuple(row.values()) for row in found)


def test_all_links_are_up_to_date_when_the_round_is_over(
    session: SparkSession, chain, expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = Links(session, tmp_path, chain)
    bundle = links.bundle(1)
    read_by_spark, run = [], RoundJob.run

    def noted(job: RoundJob, files: Sequence[Path], count: int):
        read_by_spark.append({path.parent.parent.name for path in files})
        return run(job, files, count)

    monkeypatch.setattr(RoundJob, "run", noted)
    is_open, depths = True, Counter[int]()
    while is_open:
        is_open = links.give()
        bundle.round()
        depth = 0
        while bundle.has_followers:
            bundle.follow()
            depth += 1
        depths[depth] += 1
    assert links.result() == expected
    # means and the join's left side, the join, loud; then the gathering of nothing.
    assert max(depths) == 3 and depths[3] > 3
    # upper(k) is Spark's: of what the bundle gives itself only loud's input is read by it.
    assert read_by_spark.count({"s"}) == 12
    assert {name for names in read_by_spark for name in names} == {"s", "peaks"}


@pytest.mark.parametrize("step", STEPS)
def test_death_at_any_step_between_links_changes_nothing(
    session: SparkSession, chain, expected, tmp_path: Path, step: str
) -> None:
    links, random = Links(session, tmp_path, chain), Random(step)
    deaths, following = 0, False

    def die(name: str) -> None:
        nonlocal deaths
        is_time = following or step == "claimed"
        if name == step and is_time and deaths < 4 and random.random() < 0.4:
            deaths += 1
            raise Died

    bundle, epoch, is_open = None, count(1), True
    while bundle is None or is_open or bundle.has_followers:
        try:
            if bundle is None:
                bundle = links.bundle(next(epoch), die)
                bundle.round()
            following = True
            while bundle.has_followers:
                bundle.follow()
            following = False
            if is_open:
                is_open = links.give()
                bundle.round()
        except Died:
            bundle, following = None, False
    assert deaths >= 2, "the fault must have struck"
    assert links.result() == expected
