"""What the REST API says about a system, put together from its catalog."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from penstock import __version__
from penstock.control.answer_models import (
    BeginAnswer,
    FragmentAnswer,
    MoveAnswer,
    NegotiationAnswer,
    NodeAnswer,
    OperatorAnswer,
    QueryAnswer,
    SetAsideAnswer,
    ShownState,
    SystemAnswer,
    Unmeasured,
)
from penstock.control.catalog import Catalog
from penstock.control.decisions import RESTARTS_AT_MOST
from penstock.control.latencies import Wanted, misses
from penstock.control.metrics import SystemMetrics
from penstock.control.negotiation_story import NEGOTIATION
from penstock.control.notes import is_waiting_for_node, place_notes, reading_notes
from penstock.control.records import UNREADABLE, Contact, MoveRecord, NodeRecord, UnitRecord
from penstock.control.sharing_answers import kept_for, shared_of
from penstock.control.standing import with_standing
from penstock.control.system import System, Unit
from penstock.control.system_balance import balance_answer
from penstock.control.unreadable import unreadable_units
from penstock.load.apportion import OperatorShare, operator_shares
from penstock.load.costs import measured_costs
from penstock.model.durations import US_PER_S, moment_text
from penstock.model.measurements import FragmentStatus, NodeSample, UnitSample
from penstock.place.rhythm import latency_limit_us

_MOST_TOLD = 2_000
_SUMMARY: tuple[ShownState, ...] = (
    "failed",
    UNREADABLE,
    "held back",
    "waiting",
    "starting",
    "running",
    "finished",
)
"""States from the worst to the best."""


def nodes_answer(catalog: Catalog) -> list[NodeAnswer]:
    """Every node with what it has, what it uses and what runs on it."""
    now_s, units, contacts = catalog.now_s(), catalog.units(), catalog.contacts()
    return [
        _node(
            node,
            catalog.latest_sample(node.name),
            units,
            ages_now(contacts.get(node.name), now_s),
            now_s,
        )
        for node in catalog.nodes()
    ]


def ages_now(contact: Contact | None, now_s: float) -> dict[str, float]:
    """How old, in seconds, what a node has heard of the others is by now.

    >>> ages_now(Contact("a", "a-1", "127.0.0.1:1", {"b": 0.5}, heard_s=10.0), now_s=11.0)
    {'b': 1.5}
    """
    if contact is None:
        return {}
    since_s = max(0.0, now_s - contact.heard_s)
    return {name: round(age_s + since_s, 1) for name, age_s in contact.heard.items()}


def _node(
    node: NodeRecord,
    latest: NodeSample | None,
    units: Iterable[UnitRecord],
    heard: dict[str, float],
    now_s: float,
) -> NodeAnswer:
    alive = node.is_alive(now_s)
    used = latest if alive and latest is not None else NodeSample(now_s)
    return NodeAnswer(
        name=node.name,
        state="up" if alive else ("gone" if node.incarnation else "starting"),
        cores=node.cores,
        memory_limit_bytes=node.memory_bytes,
        pid=node.pid,
        version=node.version,
        utilisation=used.utilisation,
        memory_bytes=used.memory_bytes,
        heard=heard,
        runs=[unit.name for unit in units if unit.node == node.name],
        parent=node.parent,
    )


def fragments_answer(
    catalog: Catalog, system: System, set_aside: Sequence[SetAsideAnswer] = ()
) -> list[FragmentAnswer]:
    """Every fragment and intake: where it is, how it does, what was last measured.

    ``set_aside`` is what could not be used of streams.
    """
    wanted = {name: _wanted(unit) for name, unit in system.units.items()}
    unreadable = unreadable_units(system, set_aside)
    found = _fragments(catalog, system, wanted, unreadable)
    missed = misses(found, nodes_answer(catalog), wanted)
    told = [
        fragment.model_copy(update={"late": True, "notes": [*fragment.notes, miss.text]})
        if (miss := missed.get(fragment.name)) is not None
        else fragment
        for fragment in found
    ]
    return with_standing(told, time.time())


def _wanted(unit: Unit) -> Wanted:
    if unit.fragment is None:
        return Wanted(None)
    limit_us = latency_limit_us(unit.network, unit.fragment)
    return Wanted(None if limit_us is None else limit_us / US_PER_S, unit.reads)


def _fragments(
    catalog: Catalog,
    system: System,
    wanted: Mapping[str, Wanted],
    unreadable: Mapping[str, str],
) -> list[FragmentAnswer]:
    """All of them, as if none came late."""
    nodes, now_s = catalog.nodes(), catalog.now_s()
    alive = {node.name for node in nodes if node.is_alive(now_s)}
    begins = {begin.fragment: begin for begin in begins_answer(system.units.values())}
    # Of its present node only: one that is gone has left old numbers behind.
    latest = {node.name: catalog.latest_sample(node.name) for node in nodes}
    units = catalog.units()
    failed = {unit.name for unit in units if unit.has_said("failed")}
    reads = {
        name: [system.makers[stream].name for stream in unit.reads if stream in system.makers]
        for name, unit in system.units.items()
    }
    return [
        FragmentAnswer(
            name=unit.name,
            kind=unit.kind,
            node=unit.node,
            belongs=unit.belongs or unit.node,
            state=_state(unit, alive, unreadable),
            notes=place_notes(unit, alive) + reading_notes(reads.get(unit.name, ()), failed),
            limit_s=wanted[unit.name].limit_s if unit.name in wanted else None,
            late=False,
            epoch=unit.epoch,
            error=unit.error or unreadable.get(unit.name, ""),
            restarts=unit.restarts,
            restarts_at_most=RESTARTS_AT_MOST,
            since=begins[unit.name].since if unit.name in begins else None,
            untimed=unit.name in begins and begins[unit.name].untimed,
            measured=unit.measured or _measured(unit, latest.get(unit.node or "")) or Unmeasured(),
        )
        for unit in units
    ]


def _measured(unit: UnitRecord, sample: NodeSample | None) -> UnitSample | None:
    return None if sample is None else sample.unit(unit.name)


def operators_answer(catalog: Catalog, system: System) -> list[OperatorAnswer]:
    """Every operator of fragments that run: its rows, and what it costs by estimate."""
    found: list[OperatorAnswer] = []
    for fragment in fragments_answer(catalog, system):
        unit, status = system.units.get(fragment.name), fragment.status
        if unit is None or unit.fragment is None or status is None or status.selectivity is None:
            continue
        rows_in = status.rows_in_here
        if not rows_in:
            continue  # Nothing to share out yet.
        rows_out = rows_in * status.selectivity
        shares = operator_shares(unit.fragment, rows_in, rows_out, status.cpu_ms, measured_costs())
        share_in_s = status.rows_in_per_s / rows_in
        found += [_operator(fragment, share, share_in_s) for share in shares]
    return found


def _operator(fragment: FragmentAnswer, share: OperatorShare, per_s: float) -> OperatorAnswer:
    return OperatorAnswer(
        operator=share.name,
        kind=share.kind,
        fragment=fragment.name,
        node=fragment.node,
        rows_in=_rounded(share.rows_in),
        rows_out=_rounded(share.rows_out),
        rows_in_per_s=_rounded(share.rows_in, per_s),
        rows_out_per_s=_rounded(share.rows_out, per_s),
        selectivity=_rounded(share.selectivity),
        cost_us=_rounded(share.cost_us),
    )


def _rounded(number: float | None, times: float = 1.0) -> float | None:
    return None if number is None else round(number * times, 3)


def _state(unit: UnitRecord, alive: Collection[str], unreadable: Collection[str]) -> ShownState:
    """What its present owner says, as long as it can."""
    if unit.is_unread:
        return "unread"
    if is_waiting_for_node(unit, alive):
        return "waiting"
    if unit.reported_epoch != unit.epoch:
        return "starting"
    return UNREADABLE if unit.state == "finished" and unit.name in unreadable else unit.state


def queries_answer(
    catalog: Catalog, system: System, set_aside: Sequence[SetAsideAnswer] = ()
) -> list[QueryAnswer]:
    """Every submission with its queries and units."""
    unreadable = unreadable_units(system, set_aside)
    units = {unit.name: unit for unit in catalog.units()}
    now_s = catalog.now_s()
    alive = {node.name for node in catalog.nodes() if node.is_alive(now_s)}
    submissions = catalog.submissions()
    whole = {other.id: other.name for other in submissions}
    names = {other.id: other.name for other in submissions if not other.is_dropped}
    users = kept_for(system, names) if system.dropped else {}
    queries = tuple(system.queries.items())
    latest = {node.name: catalog.latest_sample(node.name) for node in catalog.nodes()}
    found = []
    for submission in submissions:
        if submission.id not in system.deployments:
            continue  # It has come since.
        mine = [unit for unit in system.units.values() if unit.submission == submission.id]
        known = [units[unit.name] for unit in mine if unit.name in units]
        found.append(
            QueryAnswer(
                name=submission.name,
                queries=[name for name, owner in queries if owner == submission.id],
                fragments=[unit.name for unit in mine],
                begins=begins_answer(mine),
                nodes=sorted({unit.node or "" for unit in known}),
                state=_summary({_state(unit, alive, unreadable) for unit in known}),
                projected_s=submission.sharing.projected_s,
                measured_s=_measured_s(known, latest),
                kept_for=list(users.get(submission.id, ())) if submission.is_dropped else [],
                shares=list(shared_of(system, submission, whole)),
            )
        )
    return found


def _measured_s(
    units: Iterable[UnitRecord], latest: Mapping[str, NodeSample | None]
) -> float | None:
    """How old the oldest results of some fragments are."""
    found = [_measured(unit, latest.get(unit.node or "")) for unit in units]
    told = [status.latency_p99_s for status in found if isinstance(status, FragmentStatus)]
    return max((latency_s for latency_s in told if latency_s is not None), default=None)


def begins_answer(units: Iterable[Unit]) -> list[BeginAnswer]:
    """Since when the queries of each fragment count."""
    return [
        BeginAnswer(
            fragment=unit.name,
            queries=list(unit.fragment.queries),
            start=unit.fragment.beginning.start,
            since=_moment(unit.fragment.beginning.since_us),
            untimed=unit.fragment.beginning.is_untimed,
        )
        for unit in units
        if unit.fragment is not None
    ]


def _moment(us: int | None) -> str | None:
    return None if us is None else moment_text(us)


def _summary(states: Collection[ShownState]) -> ShownState:
    for state in _SUMMARY:
        if state in states:
            return "starting" if state == "waiting" else state
    return "unread"


def system_answer(
    catalog: Catalog, system: System, set_aside: Sequence[SetAsideAnswer] = ()
) -> SystemAnswer:
    """All of it; ``set_aside`` is what could not be used of streams."""
    return SystemAnswer(
        version=__version__,
        nodes=nodes_answer(catalog),
        queries=queries_answer(catalog, system, set_aside),
        fragments=fragments_answer(catalog, system, set_aside),
        moves=[MoveAnswer.of(move) for move in catalog.moves(last=10)],
        set_aside=list(set_aside),
        balance=balance_answer(catalog),
    )


def negotiations_answer(catalog: Catalog, last: int) -> list[NegotiationAnswer]:
    """The latest negotiations of neighbours in a tree, oldest first."""
    told = catalog.events(last=last, kind=NEGOTIATION)
    read = NegotiationAnswer.model_validate
    return [read(event.numbers["told"] | {"text": event.text}) for event in told]  # type: ignore[operator]


def explain_move(catalog: Catalog, move: MoveRecord) -> MoveAnswer:
    """A move; with the negotiation that it came of among its numbers, as far as that is told."""
    answer, name = MoveAnswer.of(move), move.numbers.get("negotiation")
    found = negotiations_answer(catalog, _MOST_TOLD) if name is not None else []
    told = [
        negotiation.model_dump(mode="json") for negotiation in found if negotiation.name == name
    ]
    if not told:
        return answer
    return answer.model_copy(update={"numbers": {**answer.numbers, "negotiated": told[-1]}})


def metrics_of(
    catalog: Catalog, system: System, set_aside: Sequence[SetAsideAnswer] = ()
) -> SystemMetrics:
    """The newest measurements, for Prometheus."""
    units = system.units.values()
    return SystemMetrics(
        now_s=time.time(),
        nodes=nodes_answer(catalog),
        fragments=fragments_answer(catalog, system, set_aside),
        operators=operators_answer(catalog, system),
        set_aside=set_aside,
        submissions=queries_answer(catalog, system, set_aside),
        queries={unit.name: unit.fragment.queries for unit in units if unit.fragment is not None},
    )
