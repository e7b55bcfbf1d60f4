"""The benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.bench.overhead import overhead
from penstock.bench.report import Report

Bench = Callable[[bool, Callable[[str], None]], Report]

BENCHES: Mapping[str, Bench] = {"overhead": overhead}
