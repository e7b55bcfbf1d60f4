"""Rounds of members that hand on rows of shared streams: read here, filtered and mapped, given."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import pyarrow as pa

from penstock.channels.channel import Channel
from penstock.channels.manifest import Manifest
from penstock.kernels.rows_plan import RowsPlan
from penstock.spark.bundles.round_reading import NewRows, RoundWork, take_new
from penstock.spark.bundles.running import Running


class RowRounds:
    """Reads what is new in shared streams, each batch once for all who stand at it.

    Without a Spark job: what has been computed already is small beside what it is computed from.
    """

    def __init__(self, channel_of: Callable[[str], Channel], max_rows: int) -> None:
        self._channel_of = channel_of
        self._max_rows = max_rows

    def read(self, work: RoundWork, numbers: Iterable[int]) -> dict[int, BaseException]:
        """Adds what members give of new rows to the work; what went wrong, by member."""
        failed: dict[int, BaseException] = {}
        known: dict[tuple[str, int], tuple[list[Manifest], pa.Table | None]] = {}
        for number in numbers:
            try:
                self._take(work, number, known)
            except Exception as error:
                failed[number] = error
        return failed

    def _take(
        self,
        work: RoundWork,
        number: int,
        known: dict[tuple[str, int], tuple[list[Manifest], pa.Table | None]],
    ) -> None:
        began_s = time.perf_counter()
        running: Running = work.reached[number]
        plan, position = running.plan, running.inputs[0]
        assert isinstance(plan, RowsPlan)
        where = position.channel, position.next
        if where not in known:
            known[where] = self._new_rows(*where, list(plan.schema.names))
            work.note(known[where][0])
        manifests, rows = known[where]
        if not manifests:
            return
        given = None if rows is None else plan.give(rows)
        work.reached[number] = running.after(manifests)
        if given is not None and given.num_rows:
            work.given[number] = given
        work.job_ms[number] += 1_000 * (time.perf_counter() - began_s)

    def _new_rows(
        self, channel: str, start: int, columns: list[str]
    ) -> tuple[list[Manifest], pa.Table | None]:
        log = self._channel_of(channel)
        manifests = take_new(log, start, self._max_rows)
        new = NewRows(log, manifests, is_given_here=False)
        new.check()
        return manifests, new.rows(columns) if new.count else None
