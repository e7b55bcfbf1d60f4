"""Rounds of what gathers the results of a join's parts: their rows as one stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.channels.channel import Channel
from penstock.channels.durable import RESTORE
from penstock.channels.manifest import Manifest
from penstock.errors import RunError
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.window_state import LONG_AGO_US
from penstock.spark.bundles.round_reading import OnStep, RoundWork
from penstock.spark.bundles.running import InputPosition, Running
from penstock.spark.sources.channel_reader import check_file


class GatherRounds:
    """Takes what is new in the channels of parts, without a Spark job: there is nothing to compute.

    A part whose time goes back says so in its channel before the one that it took groups from goes
    on. So channels are looked at twice: what a part tells that was looked at too early the first
    time, is seen the second time.
    """

    def __init__(
        self, channel_of: Callable[[str], Channel], max_rows: int, on_step: OnStep
    ) -> None:
        self._channel_of = channel_of
        self._max_rows = max_rows
        self._on_step = on_step

    def read(self, work: RoundWork, numbers: Iterable[int]) -> dict[int, BaseException]:
        """Adds what is gathered by the round to the work; what went wrong, by member."""
        failed: dict[int, BaseException] = {}
        for number in numbers:
            began_s = time.perf_counter()
            try:
                self._gather(work, number)
            except Exception as error:
                failed[number] = error
            work.job_ms[number] += 1_000 * (time.perf_counter() - began_s)
            self._on_step("gathered")
        return failed

    def _gather(self, work: RoundWork, number: int) -> None:
        running = work.reached[number]
        taken = self._new_batches(running)
        if not any(taken):
            return
        manifests = [manifest for batches in taken for manifest in batches]
        rows = self._rows(running, taken)
        inputs = tuple(
            self._behind(position, batches)
            for position, batches in zip(running.inputs, taken, strict=True)
        )
        work.reached[number] = running.reach(inputs, rows.num_rows)
        work.note(manifests)
        if rows.num_rows:
            work.given[number] = rows

    def _new_batches(self, running: Running) -> list[list[Manifest]]:
        rows, found = 0, list[list[Manifest]]()
        for position in running.inputs:
            batches: list[Manifest] = []
            if not position.ended:
                for manifest in self._channel_of(position.channel).newer(position.next):
                    rows += manifest.rows
                    if rows > self._max_rows and (batches or any(found)):
                        break
                    batches.append(manifest)
            found.append(batches)
        return found

    def _behind(self, position: InputPosition, batches: Sequence[Manifest]) -> InputPosition:
        """The position behind these batches, at the earliest time told by them or later ones."""
        behind = position.after(batches)
        if behind.ended:
            return behind
        told = [manifest.watermark_us for manifest in batches]
        last_us = next((us for us in reversed(told) if us is not None), position.watermark_us)
        later = self._channel_of(position.channel).newer(behind.next)
        still = [manifest.watermark_us for manifest in later if not manifest.ended]
        coming = [us for us in still if us is not None]
        return replace(behind, watermark_us=max(LONG_AGO_US, min([last_us, *coming])))

    def _rows(self, running: Running, taken: Sequence[Sequence[Manifest]]) -> pa.Table:
        schema = arrow_schema(running.plan.output.schema)
        tables = [
            _read(self._channel_of(position.channel), manifest, schema)
            for position, batches in zip(running.inputs, taken, strict=True)
            for manifest in batches
        ]
        return pa.concat_tables([schema.empty_table(), *tables])


def _read(channel: Channel, manifest: Manifest, schema: pa.Schema) -> pa.Table:
    tables = [schema.empty_table()]
    for file in manifest.files:
        if not file.rows:
            continue
        if file.inside is None:
            check_file(channel, file)
        try:
            tables.append(channel.rows_of(file, schema.names).cast(schema))
        except (OSError, pa.ArrowException) as error:
            path = channel.data / file.name
            raise RunError(
                f"the channel file {path} cannot be read ({error})", hint=RESTORE
            ) from None
    return pa.concat_tables(tables)
