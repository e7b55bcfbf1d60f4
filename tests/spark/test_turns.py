"""Whose turn it is when more wants to run than there are cores."""

from __future__ import annotations

import threading
from contextlib import suppress

from pyspark.sql import SparkSession

from waiting import until

JOBS = 6


def test_who_has_waited_longest_is_next(session: SparkSession) -> None:
    """By their names, the last to come would be the first to run."""
    names = [f"q{JOBS - at}" for at in range(JOBS)]
    done: list[str] = []
    tracker = session.sparkContext.statusTracker()

    def hold() -> None:
        session.sparkContext.setJobGroup("hold", "", interruptOnCancel=True)
        held = session.range(0, 2, 1, 2)
        with suppress(Exception):
            held.selectExpr("reflect('java.lang.Thread', 'sleep', 600000L)").collect()

    def work(name: str) -> None:
        session.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        session.range(0, 1_000_000, 1, 1).selectExpr("sum(id % 7)").collect()
        done.append(name)

    threads = [threading.Thread(target=hold)]
    threads += [threading.Thread(target=work, args=(name,)) for name in names]
    for count, thread in enumerate(threads, start=1):
        thread.start()
        until(lambda count=count: len(tracker.getActiveJobsIds()) >= count, 60)  # type: ignore[misc]
    assert not done, "all wait while the cores are held"
    session.sparkContext.cancelJobGroup("hold")
    for thread in threads:
        thread.join()
    # Two run side by side, so that neighbours may change places.
    places = [done.index(name) for name in names]
    assert all(abs(place - at) <= 2 for at, place in enumerate(places)), done
