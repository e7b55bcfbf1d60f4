"""What a submission would do to a system: its measurements, as the projection wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from penstock.control.catalog import Catalog
from penstock.control.records import NodeRecord, Submission, UnitRecord
from penstock.control.system import System, Unit
from penstock.errors import InputError
from penstock.load.costs import LIGHT_READING, LIGHT_ROUND, CostTable, measured_costs
from penstock.load.shared_rounds import SharedRounds
from penstock.model.durations import US_PER_S
from penstock.model.estimates import OperatorEstimate
from penstock.model.measurements import FragmentStatus, MeasuredUse, NodeSample
from penstock.place.rhythm import (
    SHORTEST_US,
    counted_rounds_s,
    latency_limit_us,
    promised_round_us,
)
from penstock.share.impact import (
    Help,
    Impact,
    MeasuredFragment,
    MeasuredNode,
    MeasuredSystem,
    NewWork,
    chosen,
    what_would_help,
)

_SAMPLES_AT_LEAST = 5
_SAMPLES = 30
_MEAN_OF = 10
_BATCHES_AT_LEAST = 20
"""Fewer say more about starting than about work."""

Latest = Mapping[str, NodeSample | None]
"""What every node measured last."""


@dataclass(frozen=True)
class Proposal:
    """A submission as it would be taken in: what it shares, where it goes, what comes of that."""

    asked: Submission
    system: System
    planned: Mapping[str, str]
    work: tuple[NewWork, ...]
    impact: Impact
    help: tuple[Help, ...] = ()

    @property
    def units(self) -> tuple[Unit, ...]:
        """What is added."""
        units = self.system.units.values()
        return tuple(unit for unit in units if unit.submission == self.asked.id)


@dataclass
class Examiner:
    """Looks at what was measured; nothing is changed by that.

    How busy nodes were it keeps, and reads only what is new of it: with what was measured of all
    that runs it is long. What it projected it keeps as well, until that shows in what is measured.
    """

    catalog: Catalog
    _projected: dict[str, float] = field(default_factory=dict)
    _loads: dict[str, list[MeasuredUse]] = field(default_factory=dict)

    def examined(
        self,
        asked: Submission,
        system: System,
        planned: Mapping[str, str],
        estimates: Mapping[str, OperatorEstimate],
        records: Mapping[str, UnitRecord],
        may_choose: bool = True,
    ) -> Proposal:
        """What a submission comes to; where it does not fit as planned, on a node where it does.

        Unless it is not said freely where it goes, so that there is nothing to choose.
        """
        now_s = self.catalog.now_s()
        nodes = [node for node in self.catalog.nodes() if node.is_alive(now_s)]
        loads = {node.name: self._loads_of(node.name) for node in nodes}
        latest = {node.name: self.catalog.latest_sample(node.name) for node in nodes}
        names = {submission.id: submission.name for submission in self.catalog.submissions()}
        known = {
            node.name: _node(node, loads[node.name], self._unseen(node.name, records))
            for node in nodes
        }
        situation = _situation(system, asked.id, known, latest, records, names)
        work = _new_work(system, asked.id, planned, estimates, records, latest, nodes)
        work = tuple(_as_dear_as_others(new_work, situation) for new_work in work)
        nodes_before = {new_work.name: new_work.node for new_work in work}
        pinned = {unit.name for unit in system.units.values() if unit.on is not None}
        movable = may_choose and not any(new_work.name in pinned for new_work in work)
        work, impact = chosen(situation, work, lambda _: movable)
        helping = () if impact.fits else what_would_help(situation, work, impact)
        self._projected |= {new_work.name: new_work.cores or 0.0 for new_work in work}
        moved = {
            new_work.name: new_work.node
            for new_work in work
            if new_work.node != nodes_before[new_work.name]
        }
        placed = {**planned, **moved}
        latency_s = impact.latency_s
        known_s = latency_s if latency_s is not None and isfinite(latency_s) else None
        asked = replace(asked, sharing=replace(asked.sharing, projected_s=known_s))
        return Proposal(asked, system, placed, work, impact, helping)

    def _unseen(self, node: str, records: Mapping[str, UnitRecord]) -> list[tuple[float, float]]:
        """Since when a node has what is new there, and the cores projected for it."""
        self._projected = {
            name: self._projected[name] for name in self._projected if name in records
        }
        found = ((records[name], cores) for name, cores in self._projected.items())
        return [
            (record.assigned_s, cores)
            for record, cores in found
            if record.node == node and record.epoch == 1 and record.assigned_s is not None
        ]

    def _loads_of(self, node: str) -> list[MeasuredUse]:
        known = self._loads.get(node, [])
        known = [*known, *self.catalog.loads(node, _SAMPLES, known[-1].at_s if known else 0.0)]
        self._loads[node] = known[-_SAMPLES:]
        return self._loads[node]


def _situation(
    system: System,
    asked: int,
    nodes: Mapping[str, MeasuredNode],
    latest: Latest,
    records: Mapping[str, UnitRecord],
    names: Mapping[int, str],
) -> MeasuredSystem:
    found = []
    for unit in system.units.values():
        record = records.get(unit.name)
        if unit.fragment is None or unit.submission == asked or record is None:
            continue
        if record.node is None or record.is_dropped or record.has_said("finished"):
            continue
        status = _status(unit.name, record, latest)
        found.append(_fragment(system, unit, record.node, status, names))
    return MeasuredSystem(tuple(nodes.values()), tuple(found))


def _node(
    node: NodeRecord, loads: Sequence[MeasuredUse], unseen: Sequence[tuple[float, float]]
) -> MeasuredNode:
    """How busy a node is; of what came meanwhile, the part that the mean does not have yet."""
    since = [load for load in loads if load.at_s >= node.joined_s]
    if len(since) < _SAMPLES_AT_LEAST:
        return MeasuredNode(node.name, node.cores)
    recent = since[-_MEAN_OF:]
    mean = sum(load.utilisation for load in recent) / len(recent)
    for assigned_s, cores in unseen:
        before = sum(load.at_s < assigned_s for load in recent)
        mean += cores / node.cores * before / len(recent)
    peak = max(load.utilisation for load in since)
    return MeasuredNode(node.name, node.cores, mean, max(mean, peak))


def _status(name: str, record: UnitRecord, latest: Latest) -> FragmentStatus | None:
    sample = latest.get(record.node or "")
    return None if sample is None else sample.fragments.get(name)


def _fragment(
    system: System,
    unit: Unit,
    node: str,
    status: FragmentStatus | None,
    names: Mapping[int, str],
) -> MeasuredFragment:
    assert unit.fragment is not None
    limit_us = latency_limit_us(unit.network, unit.fragment)
    known = status if status is not None and status.batches >= _BATCHES_AT_LEAST else None
    cost_us = None if status is None else status.cost_us
    is_light = known is not None and known.round_ms > 0
    round_us = promised_round_us(unit.network, unit.fragment) if is_light else 0
    return MeasuredFragment(
        unit.name,
        names.get(unit.submission, unit.name),
        node,
        batch_s=0.0 if known is None else (known.round_ms or known.batch_ms) / 1_000,
        latency_s=None if known is None else known.latency_p99_s,
        limit_s=None if limit_us is None else limit_us / US_PER_S,
        reads=_fragments_read(system, unit),
        cores=0.0 if status is None else status.rows_in_per_s * (cost_us or 0.0) / 1e6,
        streams=_streams_read(system, unit),
        round_s=(SHORTEST_US if round_us is None else round_us) / US_PER_S,
    )


def _fragments_read(system: System, unit: Unit) -> tuple[str, ...]:
    makers = (system.makers[stream] for stream in unit.reads)
    return tuple(maker.name for maker in makers if maker.fragment is not None)


def _streams_read(system: System, unit: Unit) -> tuple[str, ...]:
    return tuple(name for name in unit.reads if system.makers[name].fragment is None)


def _new_work(
    system: System,
    asked: int,
    planned: Mapping[str, str],
    estimates: Mapping[str, OperatorEstimate],
    records: Mapping[str, UnitRecord],
    latest: Latest,
    nodes: Sequence[NodeRecord],
) -> tuple[NewWork, ...]:
    # Only now: what it needs is large.
    from penstock.kernels.engine_choice import light_fragments

    units = [unit for unit in system.units.values() if unit.submission == asked and unit.fragment]
    runs = {name: sum(record.node == name for record in records.values()) for name in _names(nodes)}
    rates: dict[str, float | None] = {}
    costs, found = measured_costs(), list[NewWork]()
    for unit in units:
        fragment = unit.fragment
        assert fragment is not None
        light = light_fragments(unit.network, [fragment])
        round_s = counted_rounds_s(unit.network, [fragment])[fragment.name]
        limit_us = latency_limit_us(unit.network, fragment)
        rate = _rate(system, unit, records, latest, rates)
        estimate = estimates.get(unit.name)
        rounds = SharedRounds(costs, [fragment], light, {fragment.name: round_s})
        batch_ms = rounds.batch_ms(fragment)
        selectivity = 1.0 if estimate is None else (estimate.selectivity or 1.0)
        rates[unit.gives] = None if rate is None else rate * selectivity
        found.append(
            NewWork(
                unit.name,
                unit.on
                or planned.get(unit.name)
                or min(runs, key=lambda n: (runs[n], n), default=""),
                _cores(unit, estimate, rate, rounds),
                0.0 if batch_ms is None else batch_ms / 1_000,
                round_s,
                None if limit_us is None else limit_us / US_PER_S,
                _fragments_read(system, unit),
                _streams_read(system, unit),
                fragment.name in light,
                _opening_cores(rate, round_s, costs),
            )
        )
    return tuple(found)


def _names(nodes: Sequence[NodeRecord]) -> list[str]:
    return [node.name for node in nodes]


def _rate(
    system: System,
    unit: Unit,
    records: Mapping[str, UnitRecord],
    latest: Latest,
    known: Mapping[str, float | None],
) -> float | None:
    """The rows that a fragment would read in a second, None where that was not measured.

    Of a stream from outside that is what others read of it; of a result what is given of it.
    """
    total = 0.0
    for stream in unit.reads:
        rate = known[stream] if stream in known else _measured_rate(system, stream, records, latest)
        if rate is None:
            return None
        total += rate
    return total


def _measured_rate(
    system: System,
    stream: str,
    records: Mapping[str, UnitRecord],
    latest: Latest,
) -> float | None:
    maker = system.makers[stream]
    if maker.fragment is not None and maker.name in records:
        status = _status(maker.name, records[maker.name], latest)
        if status is not None and status.selectivity is not None:
            return status.rows_in_per_s * status.selectivity
    for unit in system.units.values():
        if unit.reads == (stream,) and unit.name in records:
            status = _status(unit.name, records[unit.name], latest)
            if status is not None and status.batches:
                return status.rows_in_per_s
    return None


def _cores(
    unit: Unit, estimate: OperatorEstimate | None, rate: float | None, rounds: SharedRounds
) -> float | None:
    """What a fragment would use: rounds times the cost of a batch, and rows times that of a row.

    What the same work has cost before counts more than what its operators cost elsewhere. A round
    that others of the node have anyway is not counted again.
    """
    fragment = unit.fragment
    assert fragment is not None
    if rate is None:
        return None
    batch_ms, round_s = rounds.batch_ms(fragment), rounds.round_s(fragment)
    fixed = 0.0 if batch_ms is None or not round_s else batch_ms / 1_000 / round_s
    if estimate is not None and estimate.cost_us is not None:
        return fixed + rate * rounds.measured_row_us(fragment, estimate) / 1e6
    light_us = rounds.row_us(fragment)
    if light_us is not None:
        return fixed + rate * light_us / 1e6
    kinds = [rounds.costs.of(operator.kind) for operator in fragment.operators]
    return fixed + rate * sum(cost for cost in kinds if cost is not None) / 1e6


def _as_dear_as_others(work: NewWork, situation: MeasuredSystem) -> NewWork:
    """The same work, not dearer than those that read the same streams would be with it, on average.

    Light fragments share the reading of rows and the round; each one more makes all of them
    cheaper. Where that has been measured (``penstock bench costs``), what one adds is known.
    """
    beside = [
        fragment.cores
        for fragment in situation.fragments
        if fragment.is_light and work.streams and fragment.streams == work.streams
    ]
    if work.cores is None or not work.is_light or not any(beside):
        return work
    return replace(work, cores=min(work.cores, sum(beside) / (len(beside) + 1)))


def _opening_cores(rate: float | None, round_s: float, costs: CostTable) -> float:
    """What rounds over a stream cost in themselves, whoever takes part."""
    round_ms, reading_us = costs.batch_ms.get(LIGHT_ROUND, 0.0), costs.of(LIGHT_READING) or 0.0
    return round_ms / 1_000 / round_s + (rate or 0.0) * reading_us / 1e6


def refusal(proposal: Proposal) -> InputError:
    """The error for a submission that does not fit."""
    help_text = " · ".join(remedy.text for remedy in proposal.help)
    hint = f"What would help: {help_text}." if help_text else "Nothing that was tried would help."
    reasons = "; ".join(why(proposal))
    return InputError(
        f"{proposal.asked.name} does not fit: {reasons}",
        hint=f"{hint} --force takes it in all the same.",
    )


def why(proposal: Proposal) -> list[str]:
    """Why a submission does not fit, a sentence for each reason."""
    impact = proposal.impact
    if impact.fits:
        return []
    found = [
        f"node {name} would reach {impact.loads[name]:.2f} of its CPU"
        f" ({impact.peaks.get(name, impact.loads[name]):.2f} in bursts)"
        for name in impact.full
    ]
    if impact.is_late:
        found.append(
            f"its results would take {_seconds(impact.latency_s)} (limit "
            f"{_seconds(impact.limit_s)})"
        )
    found += [
        f"{touched.query} would take {_seconds(touched.after_s)} instead of "
        f"{_seconds(touched.before_s)} (limit {_seconds(touched.limit_s)})"
        for touched in impact.late
    ]
    return found


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "not known"
    return f"{seconds:.3g} s" if isfinite(seconds) else "for ever"
