"""The strategies by name: ours, and those that other packages bring along.

A package brings one along by an entry point of the group ``penstock.strategies`` that names its
class; see ``docs/placement.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint

from penstock.errors import InputError, listed, suggestion
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
    known: dict[str, type[Strategy]] = {one.name: one for one in OWN}
    for entry in brought:
        found = _loaded(entry)
        if found.name in known:
            raise InputError(
                f"two strategies are called {found.name}; the second is {entry.value}",
                hint="Rename it, or uninstall the package that brings it.",
            )
        known[found.name] = found
    return known


def _loaded(entry: EntryPoint) -> type[Strategy]:
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"the strategy {entry.name} cannot be loaded from {entry.value}: {error}",
            hint="Mend or uninstall the package that brings it.",
        ) from None
    if not (isinstance(found, type) and issubclass(found, Strategy) and hasattr(found, "name")):
        raise InputError(
            f"the strategy {entry.name} is {entry.value}, which is no named Strategy class",
            hint="Subclass penstock.place.strategy.Strategy and give it a name.",
        )
    return found


def strategy_called(name: str, known: Mapping[str, type[Strategy]]) -> type[Strategy]:
    """The strategy of that name."""
    if name not in known:
        hint = f"There are {listed(known)}. {suggestion(name, known)}".strip()
        raise InputError(f"no placement strategy {name}", hint=hint)
    return known[name]
