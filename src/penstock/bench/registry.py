"""The benchmarks by name, in the form the command line asks for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from penstock.bench.admission import admission
from penstock.bench.correlation import correlation
from penstock.bench.costs import costs, write_table
from penstock.bench.density import PEERS, density
from penstock.bench.handover import handover
from penstock.bench.hop import hop
from penstock.bench.join import join
from penstock.bench.join_kernel import join_kernel
from penstock.bench.join_moves import join_moves
from penstock.bench.overhead import overhead
from penstock.bench.placement import placement
from penstock.bench.power import power
from penstock.bench.report import Report
from penstock.bench.sharing import sharing
from penstock.bench.simulator import simulator
from penstock.bench.steadiness import steadiness
from penstock.errors import InputError, listed

Say = Callable[[str], None]
Measure = Callable[[bool, Say], Report]
MeasureSome = Callable[[bool, Say, str], Report]
Bench = Callable[[bool, str, str], Mapping[str, Any]]


def say(what: str) -> None:
    """Shows what is being measured, on standard error so that output stays clean."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)
    else:
        print(what, file=sys.stderr, flush=True)


def _whole(measure: Measure) -> Bench:
    """A benchmark whose cases belong together: all of them are measured, or none."""

    def run(quick: bool, only: str, peer: str) -> Mapping[str, Any]:
        if only:
            raise InputError(
                f"--only {only}: the cases of this benchmark are measured together",
                hint=f"Cases can be chosen in {listed(_WITH_CASES)}.",
            )
        _check_no_peer(peer)
        return _told(measure(quick, say))

    return run


def _chosen(measure: MeasureSome) -> Bench:
    """A benchmark whose cases can be measured one by one."""

    def run(quick: bool, only: str, peer: str) -> Mapping[str, Any]:
        _check_no_peer(peer)
        return _told(measure(quick, say, only))

    return run


def _density(quick: bool, only: str, peer: str) -> Mapping[str, Any]:
    if peer not in ("", *PEERS):
        raise InputError(f"--peer {peer}: no such peer", hint=f"There is {listed(PEERS)}.")
    return _told(density(quick, say, only, (peer,) if peer else ()))


def _check_no_peer(peer: str) -> None:
    if peer:
        raise InputError(
            f"--peer {peer}: this benchmark has its own peers", hint="Use it with density."
        )


def _told(report: Report) -> Mapping[str, Any]:
    if sys.stderr.isatty():
        say("")
    return report.as_dict()


def _kept_costs(quick: bool, say: Say) -> Report:
    report = costs(quick, say)
    if not quick:
        say(f"kept in {write_table(report)}\n")
    return report


_WITH_CASES: Mapping[str, Bench] = {
    "density": _density,
    "handover": _chosen(handover),
    "join": _chosen(join),
    "join-moves": _chosen(join_moves),
    "overhead": _chosen(overhead),
}
BENCHES: Mapping[str, Bench] = {
    "overhead": _WITH_CASES["overhead"],
    "costs": _whole(_kept_costs),
    "placement": _whole(placement),
    "power": _whole(power),
    "handover": _WITH_CASES["handover"],
    "hop": _whole(hop),
    "density": _WITH_CASES["density"],
    "steadiness": _whole(steadiness),
    "correlation": _whole(correlation),
    "simulator": _whole(simulator),
    "admission": _whole(admission),
    "sharing": _whole(sharing),
    "join": _WITH_CASES["join"],
    "join-kernel": _whole(join_kernel),
    "join-moves": _WITH_CASES["join-moves"],
}
