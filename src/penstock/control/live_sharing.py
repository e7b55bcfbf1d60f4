"""What submissions share while the system runs: given out, taken back, and freed when unused."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.channels.channel import Channel
from penstock.channels.durable import read_text
from penstock.channels.layout import StateLayout
from penstock.control.catalog import Catalog
from penstock.control.recorded_plans import plan_text
from penstock.control.records import UnitRecord
from penstock.control.sharing import StreamIndex, can_be_tapped, decide_sharing
from penstock.control.system import System, Unit, prune, tap_units
from penstock.errors import InputError, listed
from penstock.model.ids import PartId
from penstock.model.network import Network
from penstock.model.sharing import SharedStream, Sharing

_TAPPED_WITHIN_S = 20.0
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Leaving:
    """What goes when submissions are dropped, what changes, and what the system then is.

    Streams that are ``untapped`` nobody shares any more.
    """

    system: System
    gone: tuple[Unit, ...]
    changed: frozenset[str]
    untapped: tuple[str, ...]

    def is_whole(self, submission: int, before: System) -> bool:
        """Whether all of one submission goes, and nothing else."""
        mine = {name for name, unit in before.units.items() if unit.submission == submission}
        return not self.changed and {unit.name for unit in self.gone} == mine

    def plans(self) -> dict[int, str]:
        """The plans of the submissions that are left with other units than before."""
        touched = {unit.submission for unit in self.gone}
        touched |= {self.system.units[name].submission for name in self.changed}
        left = touched & self.system.deployments.keys()
        return {number: plan_text(self.system, number) for number in left}

    def at_first(self, before: System) -> dict[int, str]:
        """The same while what goes is still there: it has to be stopped by its plan."""
        units = {name: self.system.units.get(name, unit) for name, unit in before.units.items()}
        whole = replace(before, units=units)
        numbers = {units[name].submission for name in self.changed}
        return {number: plan_text(whole, number) for number in numbers}


def leaving(system: System, dropped: Iterable[int]) -> Leaving:
    """What is to be done once these submissions are dropped."""
    left = prune(system, frozenset(dropped))
    gone = tuple(unit for name, unit in system.units.items() if name not in left.units)
    changed = {name for name, unit in left.units.items() if unit != system.units[name]}
    before = {tap for unit in system.units.values() for tap in unit.taps}
    after = {tap for unit in left.units.values() for tap in unit.taps}
    return Leaving(left, gone, frozenset(changed), tuple(sorted(before - after)))


def check_staying(system: System, submission: int, records: Iterable[UnitRecord]) -> None:
    """Raises if a submission reads something by name that is being dropped at the moment."""
    leaving = {record.name for record in records if record.is_dropped}
    for unit in system.units.values():
        read = {system.makers[stream].name for stream in unit.reads}
        if unit.submission == submission and read & leaving:
            raise InputError(
                f"{listed(sorted(read & leaving))} is being dropped",
                hint="Wait until it is gone, and read something else.",
            )


@dataclass
class LiveSharing:
    """Decides what a new submission shares, and gives streams inside fragments out for it."""

    state: Path
    catalog: Catalog
    channel: Callable[[str], Channel]
    _index: StreamIndex = field(default_factory=StreamIndex)

    def decide(
        self, system: System, network: Network, records: Mapping[str, UnitRecord]
    ) -> Sharing:
        """What a new network shares with what runs, of which there are these ``records``."""
        return decide_sharing(
            self._index,
            system,
            network,
            lambda unit, is_inside: self._obstacle(unit, records.get(unit.name), is_inside),
        )

    def _obstacle(self, unit: Unit, record: UnitRecord | None, is_inside: bool) -> str:
        name = unit.name
        if record is None or record.is_dropped:
            return f"{name} is being dropped"
        if record.has_said("failed"):
            return f"{name} has failed"
        if record.has_said("finished"):
            return f"{name} has come to its end"
        if record.node is None:
            return f"{name} does not run yet"
        if not is_inside:
            return ""
        engine = StateLayout(self.state).fragment(PartId(name)) / "engine"
        if read_text(engine) == "native" or not can_be_tapped(unit):
            return f"{name} is a query of its own, which is not cut while it runs"
        return ""

    def tap(self, system: System, reads: Iterable[SharedStream]) -> System:
        """The system with these streams given out, from a batch on that is recorded."""
        wanted = tuple(reads)
        units = tap_units(system.units, wanted)
        changed = {name for name, unit in units.items() if unit != system.units[name]}
        if not changed:
            return system
        whole = replace(system, units=units)
        self._replan(whole, changed)
        return whole

    def untap(self, system: System, reads: Iterable[SharedStream]) -> None:
        """Undoes it: ``system`` is how it was before."""
        units = tap_units(system.units, reads)
        changed = {name for name, unit in units.items() if unit != system.units[name]}
        self._replan(system, changed)
        for read in reads:
            if read.tapped and read.source not in system.units[read.maker].taps:
                self.channel(read.source).drop()

    def _replan(self, system: System, changed: set[str]) -> None:
        numbers = {system.units[name].submission for name in changed}
        self.catalog.replan({number: plan_text(system, number) for number in numbers}, changed)

    def await_tapped(self, reads: Iterable[SharedStream]) -> bool:
        """Waits until all makers run as they are planned now; whether they do in time."""
        return self.await_up({read.maker for read in reads}, _TAPPED_WITHIN_S)

    def await_up(self, names: Collection[str], patience_s: float) -> bool:
        """Waits until units run as they are planned now; whether they do in time."""
        until_s = time.monotonic() + patience_s
        while True:
            waiting = [unit for unit in self.catalog.units() if unit.name in names]
            if all(unit.is_up for unit in waiting):
                return True
            if time.monotonic() > until_s:
                return False
            time.sleep(_LOOK_EVERY_S)
