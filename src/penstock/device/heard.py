"""What a device makes of what it has heard: rows once each, windows over cycles, gaps noticed."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.channels.durable import read_record, write_record
from penstock.device.engine import ShippedRun
from penstock.device.payload import PayloadSpan
from penstock.device.plans import ShippedPlan
from penstock.device.report import DeviceReport, Gap, touched_windows
from penstock.model.windows import Window
from penstock.power.air.cycle import payload_of, rows_of

Output = Callable[[pa.Table, str], None]
"""Takes final rows, and a name that is the same if they come again."""


def result_name(origin: str | None, plan: int, start: int) -> str:
    """The name of the final rows that batches from ``start`` on brought; they sort as they came."""
    return f"{origin}-{plan:04d}-{start:010d}"


class HeardResults:
    """The state of one query on a device; kept in ``folder``, if there is one.

    Rows whose batches were heard before count once; batches that were not heard leave a gap.
    """

    def __init__(
        self, tables: Mapping[str, pa.Table], output: Output, folder: Path | None = None
    ) -> None:
        self._tables, self._output, self._folder = tables, output, folder
        self.report = DeviceReport()
        self.origin: str | None = None
        self.plan = 0
        self.next: int | None = None
        self.watermark_us: int | None = None
        self.ended = False
        self._run: ShippedRun | None = None
        self._kept: dict[str, tuple[int, pa.Table | None]] = {}
        self._windows: dict[str, Window] = {}
        self._load()

    def begin(self, origin: str) -> None:
        """Listens to the broadcast of this origin; what is known of another one does not count.

        Another broadcast counts its batches anew, so its rows would be taken for old ones.
        """
        if self.origin not in (None, origin):
            self.report.begun_anew += 1
            self.plan, self.next, self.watermark_us, self.ended = 0, None, None, False
            self._run, self._kept, self._windows = None, {}, {}
        self.origin = origin

    def take(self, rows: pa.Table, place: PayloadSpan, plan: ShippedPlan) -> None:
        """Takes in a result that came whole, made by ``plan``."""
        if plan.plan != self.plan or self._run is None:
            self._change(plan)
        start = place.first if self.next is None else max(self.next, place.first)
        if place.next <= start and self.next is not None:
            return  # All of it was heard before.
        fresh = rows.slice(place.rows_before(start))
        assert self._run is not None
        began_s = time.process_time()
        given = self._run.feed(fresh, place.watermark_us)
        self.report.processed_s += time.process_time() - began_s
        self._note_gap(place)
        self.report.rows_in += fresh.num_rows
        self.report.rows_out += given.num_rows
        if given.num_rows:
            self._output(given, result_name(self.origin, self.plan, start))
        self.next, self.ended = place.next, place.ended
        self.watermark_us = place.watermark_us
        self.save()

    def _change(self, plan: ShippedPlan) -> None:
        """Goes over to a plan; windows that both keep are handed over."""
        kept = self._run.dump() if self._run is not None else self._kept
        tables = {**plan.tables, **self._tables}
        ShippedRun(plan.steps, plan.schema, tables).rehearse()
        run = ShippedRun(plan.steps, plan.schema, tables)
        is_new = plan.plan != self.plan
        if is_new and plan.after_us is not None and self.plan:
            if self.watermark_us is None or self.watermark_us < plan.after_us:
                self.report.gaps.append(Gap(self.watermark_us, plan.after_us))
            kept = dict.fromkeys(run.dump(), (plan.after_us, None)) | kept
        run.load(kept)
        self._run, self._windows = run, run.windows()
        if is_new:
            self.next = 0 if self.plan else None
            self.plan = plan.plan

    def _note_gap(self, place: PayloadSpan) -> None:
        if self.next is None:
            if place.first > 0:
                self.report.gaps.append(Gap(None, place.latest_us))
        elif place.first > self.next:
            self.report.gaps.append(Gap(self.watermark_us, place.latest_us))

    def end_at(self, next: int, latest_us: int | None) -> None:
        """Nothing comes any more: the query ended before this batch, heard or not."""
        if self.next is None or self.next < next:
            self.report.gaps.append(Gap(self.watermark_us, latest_us))
        self.ended = True
        self.save()

    def touched(self) -> dict[str, list[list[str]]]:
        """The windows that lack rows, or may."""
        return touched_windows(self.report.gaps, self._windows)

    def steps(self) -> list[dict[str, Any]]:
        """What every shipped step has done."""
        return [vars(use) for use in self._run.uses] if self._run else []

    @property
    def _file(self) -> Path | None:
        return None if self._folder is None else self._folder / "state.json"

    def save(self) -> None:
        """Keeps everything, so that another process can go on."""
        if self._file is None or self._run is None:
            return
        windows = {
            name: [reached, None if rows is None else base64.b64encode(payload_of(rows)).decode()]
            for name, (reached, rows) in self._run.dump().items()
        }
        write_record(
            self._file,
            {
                "origin": self.origin,
                "plan": self.plan,
                "next": self.next,
                "watermark_us": self.watermark_us,
                "ended": self.ended,
                "windows": windows,
                "report": self.report.to_record(),
            },
        )

    def _load(self) -> None:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        known = read_record(self._file) if self._file is not None else None
        if not known:
            return
        self.origin, self.plan = known.get("origin"), known["plan"]
        self.next, self.ended = known["next"], known["ended"]
        self.watermark_us = known["watermark_us"]
        self.report = DeviceReport.from_record(known["report"])
        self._kept = {
            name: (reached, None if rows is None else rows_of(base64.b64decode(rows)))
            for name, (reached, rows) in known["windows"].items()
        }
