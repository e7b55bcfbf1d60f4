"""What submissions came to, as it is recorded when they are accepted.

A node reads what it is to run instead of working it out again from what people wrote. Another
version of Penstock may write plans differently, so it records them anew from the texts when it
takes over a system.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from penstock import __version__
from penstock.control.catalog import Catalog
from penstock.control.plan_codec import decode_plan, encode_plan
from penstock.control.records import UnitRecord
from penstock.control.system import System, Unit, assemble
from penstock.errors import RunError
from penstock.model.beginnings import Reread
from penstock.model.fragments import Fragment
from penstock.model.network import Deployment
from penstock.model.sources import Stream

_KEPT = 512
"""Plans that are kept as they were read."""


@dataclass(frozen=True)
class UnitPlan:
    """A unit without what it shares with the others of its submission."""

    name: str
    fragment: Fragment | None
    stream: Stream | None
    on: str | None
    is_unread: bool
    again: Reread | None
    repeats: frozenset[str]


@dataclass(frozen=True)
class SubmissionPlan:
    """A submission as it was understood, its units, and the streams it offers to others."""

    deployment: Deployment
    units: tuple[UnitPlan, ...]
    offered: tuple[Stream, ...]


def plan_text(system: System, submission: int) -> str:
    """The plan of one submission of a system, as it is recorded."""
    mine = [unit for unit in system.units.values() if unit.submission == submission]
    units = (
        UnitPlan(
            unit.name,
            unit.fragment,
            unit.stream,
            unit.on,
            unit.is_unread,
            unit.again,
            unit.repeats,
        )
        for unit in mine
    )
    offered = (
        system.streams[unit.gives]
        for unit in mine
        if unit.is_offered and unit.gives in system.streams
    )
    return encode_plan(SubmissionPlan(system.deployments[submission], tuple(units), tuple(offered)))


def recorded_system(plans: Mapping[int, str], dropped: Collection[int] = ()) -> System:
    """The system of recorded plans, by submission, oldest first.

    What is left of those that are ``dropped`` only those read who share it already.
    """
    units: dict[str, Unit] = {}
    streams: dict[str, Stream] = {}
    deployments: dict[int, Deployment] = {}
    for number, text in plans.items():
        plan = _read(text)
        units |= {unit.name: unit for unit in _units(number, plan)}
        streams |= {stream.name: stream for stream in plan.offered}
        deployments[number] = plan.deployment
    return System(units, streams, deployments, frozenset(dropped) & deployments.keys())


def recorded_unit(catalog: Catalog, record: UnitRecord) -> Unit:
    """What a node is to run; raises if it is not recorded, or no longer."""
    text = catalog.plan(record.submission)
    units = () if text is None else _units(record.submission, _read(text))
    for unit in units:
        if unit.name == record.name:
            return unit
    raise RunError(
        f"there is no plan of {record.name}",
        hint="It may have been dropped just now; otherwise start the controller again.",
    )


def keep_plans(catalog: Catalog) -> None:
    """Records plans anew if another version wrote them, or if some are missing."""
    submissions = catalog.submissions()
    known = set(catalog.plans())
    if catalog.run_by() == __version__ and known == {submission.id for submission in submissions}:
        return
    system = assemble(submissions)
    catalog.record_plans(
        {submission.id: plan_text(system, submission.id) for submission in submissions}
    )


@lru_cache(maxsize=_KEPT)
def _read(text: str) -> SubmissionPlan:
    return decode_plan(text, SubmissionPlan)


def _units(submission: int, plan: SubmissionPlan) -> tuple[Unit, ...]:
    network = plan.deployment.network
    return tuple(
        Unit(
            unit.name,
            submission,
            network,
            unit.fragment,
            unit.stream,
            unit.on,
            unit.is_unread,
            unit.again,
            unit.repeats,
        )
        for unit in plan.units
    )
