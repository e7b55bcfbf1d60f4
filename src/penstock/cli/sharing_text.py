"""What a query shares with others, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.control.answer_models import SubmittedAnswer
    from penstock.control.sharing_models import (
        AdmissionAnswer,
        GraphAnswer,
        GraphPartAnswer,
        SharedAnswer,
        SharingAnswer,
        TouchedAnswer,
    )


def decision_lines(made: SubmittedAnswer) -> Iterator[str]:
    """What was decided about a submission, and on which numbers."""
    if made.sharing is not None:
        yield from sharing_lines(made.sharing)
    if made.admission is not None:
        yield from admission_lines(made.admission)


def sharing_lines(sharing: SharingAnswer) -> Iterator[str]:
    """What is shared and what could have been; nothing where nothing runs already."""
    if sharing.shared:
        count = f"{len(sharing.saved)} of {sharing.operators} operators"
        yield f"shared    {count}: {', '.join(map(_shared, sharing.shared))}"
    for note in sharing.notes:
        yield f"not shared: {note}"


def _shared(one: SharedAnswer) -> str:
    users = f"used by {', '.join(one.used_by)}" if one.used_by else ""
    told = ", ".join(filter(None, (users, _where(one) if one.tapped else "")))
    return f"{one.source}{f' ({told})' if told else ''}{_rest(one)}"


def _where(one: SharedAnswer) -> str:
    """Where the fragment has what is shared of it."""
    if one.is_sliced:
        return f"slices of the windows of {one.fragment}"
    return f"inside {one.fragment}" if one.tapped else f"the result of {one.fragment}"


def _rest(one: SharedAnswer) -> str:
    return "" if one.rest is None else f", with a residual filter: {one.rest}"


def admission_lines(found: AdmissionAnswer) -> Iterator[str]:
    """Where new fragments go, how old results will be, and what others have of it."""
    counts = Counter(found.places.values())
    if counts:
        places = (
            f"{count} {_fragments(count)} on {node}" for node, count in sorted(counts.items())
        )
        yield f"new       {', '.join(places)}"
    if found.projected_s is not None:
        yield f"projected {_seconds(found.projected_s)} end to end{_limit(found.limit_s)}"
    elif found.limit_s is not None:
        yield f"projected not known: too little was measured yet{_limit(found.limit_s)}"
    if found.others:
        yield f"others    {' · '.join(map(_touched, found.others))}"
    for why in found.why:
        yield f"does not fit: {why}"
    if found.help:
        yield f"what would help: {' · '.join(found.help)}"


def _fragments(count: int) -> str:
    return "fragment" if count == 1 else "fragments"


def _touched(touched: TouchedAnswer) -> str:
    after = "for ever" if touched.after_s is None else _seconds(touched.after_s)
    return f"{touched.query} {touched.before_s:.2g} → {after}{_limit(touched.limit_s)}"


def _limit(limit_s: float | None) -> str:
    return "" if limit_s is None else f" (limit {_seconds(limit_s)})"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds:.0f} s"


def graph_lines(graph: GraphAnswer) -> Iterator[str]:
    """What a running query computes itself, what it reads of whom, and what that depends on."""
    yield graph.name
    for part in graph.own:
        yield f"  computes  {_does(part)}"
    for shared in graph.sharing.shared:
        users = [name for name in shared.used_by if name != graph.name]
        also = f"; used by {', '.join(users)}" if users else ""
        yield f"  shares    {shared.source}, {_where(shared)}{_rest(shared)}{also}"
    for part in graph.others:
        yield f"  of others {_does(part)} ({part.submission})"
    for note in graph.sharing.notes:
        yield f"  not shared: {note}"
    if graph.projected_s is not None:
        yield f"  projected {_seconds(graph.projected_s)}{_limit(graph.limit_s)}"
    if graph.measured_s is not None:
        yield f"  measured  {_seconds(graph.measured_s)}, the 99th percentile"


def _does(part: GraphPartAnswer) -> str:
    work = ", ".join(part.operators) or "rows from outside"
    reads = f" from {', '.join(part.reads)}" if part.reads else ""
    return f"{part.fragment} on {part.node or 'no node yet'}: {work}{reads}"
