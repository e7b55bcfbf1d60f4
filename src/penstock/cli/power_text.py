"""What ``penstock power`` tells: algorithms side by side, one plan in full, notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.app.words import counted, span
from penstock.model.devices import ORGANISATIONS
from penstock.power.energy import DeviceUse, air_order, device_uses, heard_bytes
from penstock.power.plan import SERVER_OPS, PlanComparison, PowerPlan, plan_by
from penstock.power.problem import ChainQuery, PowerProblem

_MOST_LINES = 40
_NOTHING_PERCENT = 0.05
"""Percent that would be printed as 0.0."""


def power_lines(problem: PowerProblem, found: PlanComparison, chosen: PowerPlan) -> list[str]:
    """The plans as a table, what it means, the cuts and batteries of one plan, and notes."""
    uses = device_uses(problem, found.table, chosen.entries)
    return [
        _head(problem),
        "",
        *_algorithms(problem, found, chosen),
        "",
        _meaning(found, chosen),
        "",
        *_queries(problem, found, chosen),
        *_batteries(problem, uses),
        *(f"note: {note}" for note in _notes(problem, found, chosen, uses)),
    ]


def _head(problem: PowerProblem) -> str:
    broadcast = problem.broadcast
    operators = sum(len(query.operators) for query in problem.queries)
    return (
        f"{counted(len(problem.queries), 'query')} of {counted(operators, 'operator')}, "
        f"{counted(len(problem.devices), 'device')}; {broadcast.organisation} broadcast at "
        f"{octets(broadcast.bandwidth_per_s)}/s, cycles of {span(broadcast.cycle_s)}"
    )


def _algorithms(problem: PowerProblem, found: PlanComparison, chosen: PowerPlan) -> list[str]:
    rows = [("algorithm", "energy", "tuning", "processing", "over the bound", "cycle", "battery")]
    for plan in found.best_first:
        rows.append(
            (
                plan.algorithm,
                joules(plan.energy.total_j),
                joules(plan.energy.tuning_j),
                joules(plan.energy.processing_j),
                _above(plan.energy.total_j, found.lower_bound_j),
                octets(plan.cycle_bytes),
                _first_empty(problem, device_uses(problem, found.table, plan.entries)),
            )
        )
    rows.append(("lower bound", joules(found.lower_bound_j), "", "", "", "", ""))
    marked = [False, *(plan is chosen for plan in found.best_first), False]
    lines = _aligned(rows)
    if not any(device.battery_j for device in problem.devices):
        lines = _aligned([row[:-1] for row in rows])
    return [f"{'> ' if mark else '  '}{line}" for mark, line in zip(marked, lines, strict=True)]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side: the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "   ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _above(energy_j: float, bound_j: float) -> str:
    return f"{100 * (energy_j / bound_j - 1):.1f} %" if bound_j > 0 else "0.0 %"


def _first_empty(problem: PowerProblem, uses: Mapping[str, DeviceUse]) -> str:
    lives = [life for _, life in _lives(problem, uses)]
    return life_text(min(lives)) if lives else ""


def _lives(problem: PowerProblem, uses: Mapping[str, DeviceUse]) -> list[tuple[str, float]]:
    """How long each battery lasts, the shortest first."""
    lives = [
        (device.name, uses[device.name].life_s(device.battery_j, problem.broadcast.cycle_s))
        for device in problem.devices
        if device.battery_j is not None
    ]
    return sorted(lives, key=lambda pair: pair[1])


def _meaning(found: PlanComparison, chosen: PowerPlan) -> str:
    everything_j = found.plan_of(SERVER_OPS).energy.total_j
    return (
        f"what it means: with {chosen.algorithm} the devices use "
        f"{_beside_server_ops(chosen, everything_j)}; {_beside_bound(chosen, found.lower_bound_j)}."
    )


def _beside_server_ops(chosen: PowerPlan, everything_j: float) -> str:
    own_j = chosen.energy.total_j
    if chosen.algorithm == SERVER_OPS or everything_j <= 0:
        return f"{joules(own_j)} a cycle"
    change = 100 * (1 - own_j / everything_j)
    if abs(change) < _NOTHING_PERCENT:
        return f"{joules(own_j)} a cycle, as if the server ran everything it can"
    compared = f"{abs(change):.1f} % {'less' if change > 0 else 'more'}"
    return f"{compared} than if the server ran everything"


def _beside_bound(chosen: PowerPlan, bound_j: float) -> str:
    own_j = chosen.energy.total_j
    percent = 100 * bound_j / own_j if own_j > 0 else 100.0
    is_least = 100 - percent < _NOTHING_PERCENT
    return "no plan needs less" + ("" if is_least else f" than {percent:.1f} % of that")


def _queries(problem: PowerProblem, found: PlanComparison, chosen: PowerPlan) -> list[str]:
    """Where every query is cut, in the order in which results are on the air."""
    heard = heard_bytes(found.table, chosen.entries)
    rows = [("query", "server", "device", "result", "heard", "ships")]
    for at in _order(found, chosen)[:_MOST_LINES]:
        query, cut = problem.queries[at], chosen.cuts[problem.queries[at].name]
        size = float(found.table.sizes[chosen.entries[at]])
        count = f"{len(query.operators) - cut}"
        rows.append(
            (
                query.name,
                f"{cut}",
                count,
                octets(size),
                octets(float(heard[at])),
                _ships(query, cut),
            )
        )
    more = len(problem.queries) - _MOST_LINES
    lines = _aligned([row[:-1] for row in rows])
    shipped = [row[-1] for row in rows]
    return [
        f"{chosen.algorithm}, as it is on the air: operators on server and device, bytes a cycle",
        *(f"  {line}   {ships}".rstrip() for line, ships in zip(lines, shipped, strict=True)),
        *([f"  and {more:,} more"] if more > 0 else []),
    ]


def _order(found: PlanComparison, chosen: PowerPlan) -> list[int]:
    return [int(at) for at in air_order(found.table, chosen.entries)]


def _ships(query: ChainQuery, cut: int) -> str:
    """The shipped operators by name, as far as they have one."""
    labels = [operator.label or f"{at + 1}" for at, operator in enumerate(query.operators)]
    return ", ".join(labels[cut:]) or "nothing"


def _batteries(problem: PowerProblem, uses: Mapping[str, DeviceUse]) -> list[str]:
    lives = _lives(problem, uses)
    if not lives:
        return []
    shown = [f"{name} {life_text(life)}" for name, life in lives[:8]]
    more = f" and {len(lives) - 8:,} more" if len(lives) > 8 else ""
    return ["", f"batteries last: {', '.join(shown)}{more}"]


def _notes(
    problem: PowerProblem, found: PlanComparison, chosen: PowerPlan, uses: Mapping[str, DeviceUse]
) -> Iterator[str]:
    cycle_s = problem.broadcast.cycle_s
    airtime_s = chosen.cycle_bytes / problem.broadcast.bandwidth_per_s
    if airtime_s > cycle_s:
        yield (
            f"the channel is overloaded: {span(airtime_s)} on the air for what {span(cycle_s)} "
            f"produce, {_times(airtime_s / cycle_s)} as much as it carries"
        )
    slow = [(name, use.processed_s) for name, use in uses.items() if use.processed_s > cycle_s]
    if slow:
        name, seconds = max(slow, key=lambda pair: pair[1])
        yield (
            f"{counted(len(slow), 'device')} cannot keep up; {name} would compute for "
            f"{span(seconds)} in every {span(cycle_s)}"
        )
    yield from _other_organisations(problem, found, chosen)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio >= 100 else f"{ratio:.3g} times"


def _other_organisations(
    problem: PowerProblem, found: PlanComparison, chosen: PowerPlan
) -> Iterator[str]:
    """What the same algorithm would need with another arrangement, if that is less."""
    now_j = chosen.energy.total_j
    for organisation in ORGANISATIONS:
        broadcast = replace(problem.broadcast, organisation=organisation)
        if organisation != problem.broadcast.organisation and now_j > 0:
            other_j = plan_by(
                chosen.algorithm, replace(found.table, broadcast=broadcast)
            ).energy.total_j
            if other_j < now_j * (1 - 1e-3):
                yield (
                    f"organisation: {organisation} would need {joules(other_j)}, "
                    f"{100 * (1 - other_j / now_j):.1f} % less"
                )


def joules(energy_j: float) -> str:
    """An energy in the unit that suits it.

    >>> joules(0.01234), joules(4696.49), joules(20106381.5), joules(0)
    ('12.3 mJ', '4.70 kJ', '20.1 MJ', '0 J')
    """
    return _scaled(energy_j, "J", (("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3), ("µ", 1e-6)))


def octets(count: float) -> str:
    """A number of bytes.

    >>> octets(125_000), octets(28), octets(1_130_000)
    ('125 kB', '28 B', '1.13 MB')
    """
    if count < 1_000:
        return f"{count:.3g} B"
    return _scaled(count, "B", (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)))


def _scaled(value: float, unit: str, scales: Sequence[tuple[str, float]]) -> str:
    if not value:
        return f"0 {unit}"
    prefix, scale = next(
        ((prefix, scale) for prefix, scale in scales if value >= 0.9995 * scale), scales[-1]
    )
    digits = max(0, 2 - math.floor(math.log10(max(value / scale, 1e-12) * 1.0005)))
    return f"{value / scale:,.{digits}f} {prefix}{unit}"


def life_text(seconds: float) -> str:
    """How long a battery lasts.

    >>> life_text(7_500), life_text(float("inf")), life_text(4e8)
    ('2 h 5 min', 'for ever', '4,630 days')
    """
    if seconds == math.inf:
        return "for ever"
    return span(seconds) if seconds < 100 * 86_400 else f"{seconds / 86_400:,.0f} days"
