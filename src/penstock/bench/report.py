"""What a benchmark reports, and the form it is printed in."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from penstock.errors import InputError

Chosen = TypeVar("Chosen")


@dataclass(frozen=True)
class BenchCase:
    """One measured figure; ``ratio`` is value over baseline, ``ok`` whether the goal is met.

    A figure without a goal is reported only, and is always ok.
    """

    case: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    goal: str | None = None
    ok: bool = True


@dataclass(frozen=True)
class Report:
    """The cases of one benchmark and the machine they were measured on."""

    bench: str
    cases: tuple[BenchCase, ...]
    machine: str = field(default_factory=lambda: machine())

    @property
    def ok(self) -> bool:
        return all(case.ok for case in self.cases)

    def as_dict(self) -> dict[str, Any]:
        """The stable form that ``penstock bench NAME --json`` prints."""
        return {
            "bench": self.bench,
            "machine": self.machine,
            "cases": [asdict(case) for case in self.cases],
            "ok": self.ok,
        }


def compared(
    case: str,
    value: float,
    unit: str,
    baseline: float,
    at_least: float | None = None,
    at_most: float | None = None,
) -> BenchCase:
    """A figure beside its peer's, with the ratio the goal asks for.

    >>> compared("filter", 190.0, "rows/s", 200.0, at_least=0.95).ok
    True
    """
    ratio = value / baseline if baseline else float("inf")
    if at_least is not None:
        return BenchCase(case, value, unit, baseline, ratio, f">= {at_least:g}", ratio >= at_least)
    if at_most is not None:
        return BenchCase(case, value, unit, baseline, ratio, f"<= {at_most:g}", ratio <= at_most)
    return BenchCase(case, value, unit, baseline, ratio)


def equal(case: str, value: float, unit: str, baseline: float) -> BenchCase:
    """A figure that must be that of its peer, or the two cannot be compared.

    >>> equal("batches", 16, "batches", 15).ok
    False
    """
    found = compared(case, value, unit, baseline)
    return replace(found, goal="= 1", ok=value == baseline)


def limited(case: str, value: float, unit: str, at_most: float | None = None) -> BenchCase:
    """A figure with an upper limit, or with none."""
    if at_most is None:
        return BenchCase(case, value, unit)
    return BenchCase(case, value, unit, goal=f"<= {at_most:g}", ok=value <= at_most)


def chosen_cases(cases: Mapping[str, Chosen], only: str) -> list[Chosen]:
    """The cases whose names contain a text, all for an empty one; raises if there are none.

    >>> chosen_cases({"60 s": 60, "600 s": 600}, only="60 s")
    [60]
    """
    found = [case for name, case in cases.items() if only in name]
    if not found:
        raise InputError(f"no case is called {only}", hint=f"There are: {'; '.join(cases)}.")
    return found


def machine() -> str:
    """The machine in a few words."""
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )
