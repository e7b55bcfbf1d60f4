"""The benchmarks by name, in the form the command line asks for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from penstock.bench.admission import admission
from penstock.bench.correlation import correlation
from penstock.bench.costs import costs, write_table
from penstock.bench.density import density
from penstock.bench.handover import handover
from penstock.bench.hop import hop
from penstock.bench.join import join
from penstock.bench.join_kernel import join_kernel
from penstock.bench.join_moves import join_moves
from penstock.bench.overhead import overhead
from penstock.bench.placement import placement
from penstock.bench.power import power
from penstock.bench.report import Report
from penstock.bench.simulator import simulator
from penstock.bench.steadiness import steadiness
from penstock.errors import InputError, listed

Say = Callable[[str], None]
Measure = Callable[[bool, Say], Report]
MeasureSome = Callable[[bool, Say, str], Report]
Bench = Callable[[bool, str], Mapping[str, Any]]


def say(what: str) -> None:
    """Shows what is being measured, on standard error so that output stays clean."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)
    else:
        print(what, file=sys.stderr, flush=True)


def _whole(measure: Measure) -> Bench:
    """A benchmark whose cases belong together: all of them are measured, or none."""

    def run(quick: bool, say: Say, only: str) -> Report:
        if only:
            raise InputError(
                f"--only {only}: the cases of this benchmark are measured together",
                hint=f"Cases can be chosen in {listed(_WITH_CASES)}.",
            )
        return measure(quick, say)

    return _reported(run)


def _reported(measure: MeasureSome) -> Bench:
    def run(quick: bool, only: str) -> Mapping[str, Any]:
        report = measure(quick, say, only)
        if sys.stderr.isatty():
            say("")
        return report.as_dict()

    return run


def _kept_costs(quick: bool, say: Say) -> Report:
    report = costs(quick, say)
    if not quick:
        say(f"kept in {write_table(report)}\n")
    return report


_WITH_CASES: Mapping[str, MeasureSome] = {"join": join, "join-moves": join_moves}
BENCHES: Mapping[str, Bench] = {
    "overhead": _whole(overhead),
    "costs": _whole(_kept_costs),
    "placement": _whole(placement),
    "power": _whole(power),
    "handover": _whole(handover),
    "hop": _whole(hop),
    "density": _whole(density),
    "steadiness": _whole(steadiness),
    "correlation": _whole(correlation),
    "simulator": _whole(simulator),
    "admission": _whole(admission),
    "join": _reported(join),
    "join-kernel": _whole(join_kernel),
    "join-moves": _reported(join_moves),
}
