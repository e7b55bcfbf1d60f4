"""What is asked for when a query is composed from running work, and what already runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from penstock.errors import InputError, listed, suggestion


@dataclass(frozen=True)
class PlanOperator:
    """An operator of a query plan, and the stream it gives.

    ``need`` is the share of a node it takes, ``tau_s`` the time it spends on a tuple on an idle
    node; ``bandwidth`` is the share of a link its stream takes, ``sigma_s`` the time of a tuple on
    an idle link; ``selectivity`` is what comes out over what goes in. ``does`` says in words common
    to all requests what it does; without it that is its name.
    """

    name: str
    inputs: tuple[str, ...] = ()
    need: float = 0.0
    tau_s: float = 0.0
    bandwidth: float = 0.0
    sigma_s: float = 0.0
    selectivity: float = 1.0
    does: str = ""

    def __post_init__(self) -> None:
        for what in ("need", "tau_s", "bandwidth", "sigma_s", "selectivity"):
            value = getattr(self, what)
            if not value >= 0:
                raise InputError(
                    f"operator {self.name} has a {what.removesuffix('_s')} of {value:g}",
                    hint="Give zero or more.",
                )


@dataclass(frozen=True)
class QueryPlan:
    """Operators that read each other and how long a tuple may take through all of them.

    >>> plan = QueryPlan((PlanOperator("o2", ("o1",), tau_s=0.2), PlanOperator("o1")), 1.0)
    >>> [operator.name for operator in plan.operators], plan.results
    (['o1', 'o2'], ('o2',))
    """

    operators: tuple[PlanOperator, ...]
    limit_s: float

    def __post_init__(self) -> None:
        if not self.operators:
            raise InputError("a request without operators", hint="Name at least one.")
        object.__setattr__(self, "operators", _in_reading_order(self.operators))
        least_s = max(self.longest({op.name: op.tau_s for op in self.operators}).values())
        if not self.limit_s >= least_s:
            raise InputError(
                f"the limit {self.limit_s:g} is below {least_s:g}, which processing takes on "
                "nodes without any load",
                hint=f"Give a limit above {least_s:g}.",
            )

    @cached_property
    def by_name(self) -> Mapping[str, PlanOperator]:
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def streams(self) -> Mapping[str, str]:
        """The name of every operator's stream: the expression that makes it, as o2(o1())."""
        names: dict[str, str] = {}
        for operator in self.operators:
            inputs = ",".join(names[input] for input in operator.inputs)
            names[operator.name] = f"{operator.does or operator.name}({inputs})"
        return names

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """The operators that read each operator's stream."""
        readers: dict[str, list[str]] = {operator.name: [] for operator in self.operators}
        for operator in self.operators:
            for input in operator.inputs:
                readers[input].append(operator.name)
        return {name: tuple(found) for name, found in readers.items()}

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The operators whose streams nobody in the plan reads."""
        return tuple(name for name, readers in self.readers.items() if not readers)

    def longest(
        self,
        time_s: Mapping[str, float],
        between_s: Mapping[tuple[str, str], float] | None = None,
    ) -> dict[str, float]:
        """When a tuple has left each operator: the largest sum of times over all paths to it."""
        links = between_s or {}
        left: dict[str, float] = {}
        for operator in self.operators:
            arrived = (
                left[stream] + links.get((stream, operator.name), 0.0) for stream in operator.inputs
            )
            left[operator.name] = max(arrived, default=0.0) + time_s[operator.name]
        return left


@dataclass(frozen=True)
class RunningComponent:
    """Where an application has a component, and the time it spends on a tuple on an idle node."""

    node: str
    tau_s: float

    def __post_init__(self) -> None:
        if not self.tau_s >= 0:
            raise InputError(f"a component with a tau of {self.tau_s:g}", hint="Give zero or more.")


@dataclass(frozen=True)
class RunningApp:
    """An admitted application: its limit, the time it takes now, and its components."""

    name: str
    limit_s: float
    time_s: float
    components: tuple[RunningComponent, ...] = ()

    def __post_init__(self) -> None:
        for what, value in (("limit", self.limit_s), ("time", self.time_s)):
            if not value >= 0:
                raise InputError(
                    f"application {self.name} has a {what} of {value:g}", hint="Give zero or more."
                )


def _in_reading_order(operators: tuple[PlanOperator, ...]) -> tuple[PlanOperator, ...]:
    by_name = {operator.name: operator for operator in operators}
    if len(by_name) != len(operators):
        raise InputError("two operators of a request have the same name", hint="Rename one.")
    for operator in operators:
        for input in operator.inputs:
            if input not in by_name:
                hint = f"There are {listed(by_name)}. {suggestion(input, by_name)}".strip()
                raise InputError(
                    f"operator {operator.name} reads {input}, and there is none", hint=hint
                )
    sorter = TopologicalSorter({op.name: op.inputs for op in operators})
    try:
        return tuple(by_name[name] for name in sorter.static_order())
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise InputError(
            f"these operators read each other in a circle: {circle}", hint="Break it."
        ) from None
