"""What the REST API says about sharing: what a query reads of whom, and what is kept for whom."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite

from penstock.control.examining import Proposal, why
from penstock.control.records import Submission
from penstock.control.sharing_models import (
    AdmissionAnswer,
    GraphPartAnswer,
    SharedAnswer,
    SharingAnswer,
    TouchedAnswer,
)
from penstock.control.system import System, Unit
from penstock.lang.sql.expression_text import expression_sql
from penstock.model.sharing import SharedStream


def sharing_answer(
    system: System, asked: Submission, names: Mapping[int, str], operators: Collection[str]
) -> SharingAnswer:
    """What a submission of a system shares; ``names`` are those of submissions that are wanted.

    ``operators`` are all that it asks for, by name.
    """
    shared = [_shared(system, asked.id, read, names) for read in asked.sharing.reads]
    return SharingAnswer(
        shared=shared,
        operators=len(operators),
        saved=list(asked.sharing.saved),
        notes=list(asked.sharing.notes),
    )


def graph_parts(
    system: System, mine: int, nodes: Mapping[str, str | None], names: Mapping[int, str]
) -> tuple[list[GraphPartAnswer], list[GraphPartAnswer]]:
    """The units of a submission, and those of others behind them; each after what it reads."""
    own = [unit for unit in system.units.values() if unit.submission == mine]
    waiting, behind = list(own), set[str]()
    while waiting:
        for stream in waiting.pop().reads:
            maker = system.makers[stream]
            if maker.submission != mine and maker.name not in behind:
                behind.add(maker.name)
                waiting.append(maker)
    others = [unit for unit in system.units.values() if unit.name in behind]
    return (
        [_part(unit, nodes, names) for unit in own],
        [_part(unit, nodes, names) for unit in others],
    )


def _part(unit: Unit, nodes: Mapping[str, str | None], names: Mapping[int, str]) -> GraphPartAnswer:
    operators = () if unit.fragment is None else unit.fragment.operators
    return GraphPartAnswer(
        fragment=unit.name,
        submission=names.get(unit.submission, ""),
        node=nodes.get(unit.name),
        operators=[operator.name for operator in operators],
        reads=list(unit.reads),
        shared=list(unit.shares),
        taps=list(unit.taps),
    )


def admission_answer(proposal: Proposal) -> AdmissionAnswer:
    """What a submission was projected to come to."""
    impact = proposal.impact
    return AdmissionAnswer(
        fits=impact.fits,
        projected_s=_told(impact.latency_s),
        limit_s=impact.limit_s,
        places={new_work.name: new_work.node for new_work in proposal.work if new_work.node},
        others=[
            TouchedAnswer(
                query=touched.query,
                before_s=round(touched.before_s, 4),
                after_s=_told(touched.after_s),
                limit_s=touched.limit_s,
            )
            for touched in impact.touched
        ],
        loads={name: round(load, 4) for name, load in impact.loads.items()},
        peaks={name: round(load, 4) for name, load in impact.peaks.items()},
        why=why(proposal),
        help=[help_.text for help_ in proposal.help],
    )


def _told(seconds: float | None) -> float | None:
    return None if seconds is None or not isfinite(seconds) else round(seconds, 4)


def _shared(
    system: System, mine: int, read: SharedStream, names: Mapping[int, str]
) -> SharedAnswer:
    maker = system.units[read.maker]
    return SharedAnswer(
        stream=read.stream,
        source=read.source,
        fragment=maker.name,
        submission=names.get(maker.submission, maker.name),
        used_by=_users(system, maker, read.source, mine, names),
        tapped=read.tapped,
        signature=read.signature,
        is_sliced=read.is_sliced,
        rest=None if read.rest is None else expression_sql(read.rest),
    )


def shared_of(system: System, submission: Submission, names: Mapping[int, str]) -> tuple[str, ...]:
    """The submissions of which one reads something that it would compute itself, by name."""
    makers = (system.units.get(read.maker) for read in submission.sharing.reads)
    numbers = {maker.submission for maker in makers if maker is not None}
    return tuple(sorted(names[number] for number in numbers if number in names))


def _users(
    system: System, maker: Unit, stream: str, mine: int, names: Mapping[int, str]
) -> list[str]:
    """Who else uses a stream: its owner, unless that has been dropped, and all who read it."""
    numbers = {unit.submission for unit in system.units.values() if stream in unit.reads}
    used = {maker.submission, *numbers} - {mine} - system.dropped
    return sorted(names[number] for number in used if number in names)


def kept_for(system: System, names: Mapping[int, str]) -> dict[int, tuple[str, ...]]:
    """The submissions that share something of each, directly or not, by name."""
    found: dict[int, set[str]] = {}
    for unit in system.units.values():
        waiting, seen = list(unit.reads), set[str]()
        while waiting:
            maker = system.makers[waiting.pop()]
            if maker.name not in seen:
                seen.add(maker.name)
                waiting += maker.reads
                if maker.submission != unit.submission and unit.submission in names:
                    found.setdefault(maker.submission, set()).add(names[unit.submission])
    return {number: tuple(sorted(users)) for number, users in found.items()}
