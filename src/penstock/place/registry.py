"""The strategies by name: ours, and those that other packages bring along.

A package brings one along by an entry point of the group ``penstock.strategies`` that names its
class; see ``docs/placement.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint

from penstock.errors import InputError, listed, suggestion
from penstock.model.brought import with_brought
from penstock.place.clustering import ClusteredRod
from penstock.place.connected import Connected
from penstock.place.correlated import GlobalCorrelation
from penstock.place.exhaustive import Exhaustive
from penstock.place.first_fit import FirstFit
from penstock.place.llf import LargestLoadFirst
from penstock.place.local_search import LocalSearch
from penstock.place.max_rate import MaxRate
from penstock.place.packing import Packing
from penstock.place.random_plan import Random
from penstock.place.rod import Rod
from penstock.place.strategy import Strategy

GROUP = "penstock.strategies"

OWN: tuple[type[Strategy], ...] = (
    Rod,
    ClusteredRod,
    LocalSearch,
    GlobalCorrelation,
    LargestLoadFirst,
    MaxRate,
    Connected,
    Random,
    FirstFit,
    Packing,
    Exhaustive,
)


def strategies(brought: Iterable[EntryPoint] = ()) -> Mapping[str, type[Strategy]]:
    """Our strategies and those that entry points name, by name; raises where one is not fit."""
    return with_brought(Strategy, OWN, brought)  # type: ignore[type-abstract]


def strategy_called(name: str, known: Mapping[str, type[Strategy]]) -> type[Strategy]:
    """The strategy of that name."""
    if name not in known:
        hint = f"There are {listed(known)}. {suggestion(name, known)}".strip()
        raise InputError(f"no placement strategy {name}", hint=hint)
    return known[name]
