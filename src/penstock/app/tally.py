"""What a run has read and written, counted once however many fragments read the same stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.channels.layout import StateLayout
from penstock.model.fragments import Fragment
from penstock.model.measurements import FragmentStatus
from penstock.model.network import Network
from penstock.spark.tallies import tally


def rows_from_outside(fragments: Iterable[Fragment], statuses: Iterable[FragmentStatus]) -> int:
    """The rows that came in from outside, each stream counted once.

    Fragments report the rows of all their inputs together. Those with one input tell how long
    that stream is; the others tell what is left, because the output of a fragment is what its
    readers read.
    """
    by_name = {status.fragment: status for status in statuses}
    passed_on = {name: status.rows_out for name, status in by_name.items()}
    outside: dict[str, int] = {}
    for fragment in sorted(fragments, key=lambda fragment: len(fragment.inputs)):
        rows = by_name[fragment.name].rows_in
        known = passed_on | outside
        new = [name for name in fragment.inputs if name not in known]
        if len(fragment.inputs) == 1 and fragment.inputs[0] not in passed_on:
            # Of several readers the one that is furthest.
            outside[fragment.inputs[0]] = max(rows, outside.get(fragment.inputs[0], 0))
        elif new:
            # Which of several has how many is not known, nor asked: together they are the rest.
            rest = rows - sum(known.get(name, 0) for name in fragment.inputs)
            outside |= dict.fromkeys(new, 0) | {new[0]: max(0, rest)}
    return sum(outside.values())


def rows_delivered(
    network: Network, fragments: Iterable[Fragment], statuses: Iterable[FragmentStatus]
) -> int:
    """The rows that left for where somebody wanted them."""
    by_name = {status.fragment: status for status in statuses}
    return sum(
        by_name[fragment.name].rows_out for fragment in fragments if is_delivered(network, fragment)
    )


def is_delivered(network: Network, fragment: Fragment) -> bool:
    """Whether a fragment's result goes anywhere but to other fragments."""
    sinks = (network.query(name).sink for name in fragment.queries)
    return bool(fragment.writes) or any(sink is not None for sink in sinks)


@dataclass(frozen=True)
class Counted:
    """Rows that a fragment has read and given so far."""

    rows_in: int = 0
    rows_out: int = 0


def counted_before(state: Path, fragments: Iterable[Fragment]) -> dict[str, Counted]:
    """What each fragment has read and given by what is kept in a state folder."""
    layout = StateLayout(state)
    folders = {fragment.name: layout.fragment(fragment.id) for fragment in fragments}
    return {
        name: Counted(tally(folder / "rows_in")["rows"], tally(folder / "rows_out")["rows"])
        for name, folder in folders.items()
    }


def since(
    before: Mapping[str, Counted], now: Iterable[FragmentStatus]
) -> tuple[FragmentStatus, ...]:
    """The statuses of ``now`` without the rows that were counted ``before``, by fragment."""
    pairs = ((status, before.get(status.fragment, Counted())) for status in now)
    return tuple(
        replace(
            status,
            rows_in=max(0, status.rows_in - was.rows_in),
            rows_out=max(0, status.rows_out - was.rows_out),
        )
        for status, was in pairs
    )


def set_aside_since(
    start: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """How many rows were set aside between the two counts, by stream and kind."""
    return {
        stream: {kind: max(0, n - start.get(stream, {}).get(kind, 0)) for kind, n in kinds.items()}
        for stream, kinds in now.items()
    }
