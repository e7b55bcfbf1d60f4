"""Re-cutting: cuts follow what is measured, and plans change between two cycles.

Samples are the newest rows of a query's stream, run through the chain with the engine of a device.
For another cut the server's part is submitted anew; it tells since when its results are whole, and
from that moment on rows come from there. No row comes by both plans, or by neither.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from penstock.channels.channel import Channel
from penstock.control.client import Client
from penstock.control.home import Home
from penstock.device.broadcaster import Broadcaster
from penstock.device.chain import Chain
from penstock.device.measuring import SAMPLE_ROWS, clock_hz, measure_chain, tables_for
from penstock.device.problem import ChainMeasure, problem_of
from penstock.device.segments import Segment, boundary_us, can_switch
from penstock.errors import InputError, PenstockError
from penstock.feeds.arrow import arrow_schema
from penstock.model.devices import GivenCost
from penstock.power.drift import Drift, watch_drift
from penstock.power.problem import DEVICE_TABLE

_LOOK_EVERY_CYCLES, _LEAST_S = 10, 1.0
_LEAST_ROWS = 200

log = logging.getLogger(__name__)


class Recutter:
    """Looks now and then whether other cuts would be better, and has the broadcaster switch."""

    def __init__(self, home: Home, broadcaster: Broadcaster) -> None:
        self._home, self._broadcaster = home, broadcaster
        cycle_s = broadcaster.section.broadcast.cycle_s
        self._every_s = max(_LEAST_S, _LOOK_EVERY_CYCLES * cycle_s)
        self._looked_s = time.monotonic()
        self._drift = Drift()
        self._listeners: dict[str, int] = {}
        self._queries = tuple(broadcaster.on_air())
        self._needed: set[str] | None = None
        self._tried_s = self._looked_s

    def tick(self) -> None:
        """Called after every cycle; what goes wrong in a look is logged, and looked at again."""
        try:
            self._drop_unused()
            if self._broadcaster.section.recut and self._is_due():
                self._look()
        except (PenstockError, OSError, pa.ArrowException):
            log.exception("cuts could not be looked at")

    def _is_due(self) -> bool:
        listeners = {name: len(self._broadcaster.listeners(name)) for name in self._queries}
        has_changed, self._listeners = listeners != self._listeners, listeners
        now_s = time.monotonic()
        wait_s = self._every_s / 5 if has_changed else self._every_s
        if now_s - self._looked_s < wait_s or not any(listeners.values()):
            return False
        self._looked_s = now_s
        return True

    def _look(self) -> None:
        on_air = self._broadcaster.on_air()
        if any(plan.until_us is not None for plan in on_air.values()):
            return
        chains = self._broadcaster.chains()
        measured = {}
        for name, chain in chains.items():
            found = self._measure(chain)
            if found is None:
                return
            measured[name] = found
        listeners = {name: self._broadcaster.listeners(name) for name in chains}
        problem = problem_of(self._broadcaster.section, chains, measured, listeners)
        cuts = {name: plan.cut for name, plan in on_air.items()}
        verdict = watch_drift(problem, cuts, self._drift)
        self._drift = verdict.drift
        for name, cut in (verdict.cuts or {}).items():
            if cut != cuts[name] and can_switch(chains[name], cuts[name], cut):
                self._switch(name, chains[name], cuts[name], cut)

    def _measure(self, chain: Chain) -> ChainMeasure | None:
        """What the chain costs now; behind a table of devices, that is the same for all cuts."""
        rows, rate_per_s = self._newest(chain)
        if rows.num_rows < _LEAST_ROWS or rate_per_s is None:
            return None
        own = [at for at in range(len(chain.operators)) if chain.kind(at) == DEVICE_TABLE]
        stop = own[0] if own else len(chain.operators)
        front = replace(chain, operators=chain.operators[:stop], steps=chain.steps[:stop])
        found = measure_chain(front, rows, tables_for(front, {}), clock_hz())
        rest = (GivenCost(),) * (len(chain.operators) - stop)
        return replace(found, rate_per_s=rate_per_s, costs=found.costs + rest)

    def _newest(self, chain: Chain) -> tuple[pa.Table, float | None]:
        """The newest rows of the stream, and how many come in a second: a cycle lasts real time."""
        channel = Channel.open(self._home.state / "channels" / chain.source)
        schema, count = arrow_schema(chain.source_shape.schema), 0
        tables, first_s, last_s = [schema.empty_table()], None, None
        for sequence in reversed(channel.sequences()):
            manifest = channel.manifest(sequence)
            if manifest is None or count >= SAMPLE_ROWS:
                break
            first_s = channel.entry(sequence).stat().st_mtime
            last_s = first_s if last_s is None else last_s
            for file in manifest.files:
                tables.append(channel.rows_of(file, schema.names).cast(schema))
                count += file.rows
        rows = pa.concat_tables(tables)
        if first_s is None or last_s is None or last_s <= first_s:
            return rows, None
        return rows, rows.num_rows / (last_s - first_s)

    def _switch(self, name: str, chain: Chain, old: int, new: int) -> None:
        segment = Segment(self._broadcaster.deployment.name, name, new)
        plan = self._broadcaster.on_air()[name].plan + 1
        submission = f"{segment.of}.{name}.{plan}"
        with closing(Client.of(self._home)) as client:
            made = client.submit(submission, "segment", segment.to_text(), ".")
            begin = next(begin for begin in made.begins if begin.queries)
            since = begin.since
            until_us = None if since is None else boundary_us(chain, old, new, since)
            if until_us is None:
                client.drop(submission)
                raise InputError(f"{name} cannot be cut at {new}: no moment divides the two")
        then = {"cut": new, "stream": begin.fragment, "submission": submission}
        self._broadcaster.plan_switch(name, then, until_us)
        log.info("%s will be cut at %s instead of %s", name, new, old)

    def _drop_unused(self) -> None:
        """Drops segments that no plan needs: of plans that were left, of switches that failed."""
        needed = set[str]()
        for plan in self._broadcaster.on_air().values():
            needed |= {plan.submission, str((plan.then or {}).get("submission", ""))}
        now_s = time.monotonic()
        if needed == self._needed or now_s - self._tried_s < self._every_s:
            return
        self._tried_s = now_s
        with closing(Client.of(self._home)) as client:
            for submission in client.system().queries:
                if self._is_segment(submission.name) and submission.name not in needed:
                    client.drop(submission.name)
        self._needed = needed

    def _is_segment(self, submission: str) -> bool:
        """Whether it is the segment of a query that is broadcast here."""
        front, _, number = submission.rpartition(".")
        of = self._broadcaster.deployment.name
        return number.isdigit() and front in {f"{of}.{name}" for name in self._queries}
