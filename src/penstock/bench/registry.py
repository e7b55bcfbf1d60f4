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

Measure = Callable[[bool, Callable[[str], None]], Report]


def say(what: str) -> None:
    """Shows what is being measured, on standard error so that output stays clean."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)
    else:
        print(what, file=sys.stderr, flush=True)


def _reported(measure: Measure) -> Callable[[bool], Mapping[str, Any]]:
    def run(quick: bool) -> Mapping[str, Any]:
        report = measure(quick, say)
        if sys.stderr.isatty():
            say("")
        return report.as_dict()

    return run


def _kept_costs(quick: bool, say: Callable[[str], None]) -> Report:
    report = costs(quick, say)
    if not quick:
        say(f"kept in {write_table(report)}\n")
    return report


BENCHES: Mapping[str, Callable[[bool], Mapping[str, Any]]] = {
    "overhead": _reported(overhead),
    "costs": _reported(_kept_costs),
    "placement": _reported(placement),
    "power": _reported(power),
    "handover": _reported(handover),
    "hop": _reported(hop),
    "density": _reported(density),
    "steadiness": _reported(steadiness),
    "correlation": _reported(correlation),
    "simulator": _reported(simulator),
    "admission": _reported(admission),
    "join": _reported(join),
    "join-kernel": _reported(join_kernel),
    "join-moves": _reported(join_moves),
}
