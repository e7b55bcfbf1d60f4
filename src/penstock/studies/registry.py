"""The studies by name. A study's module is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from penstock.errors import InputError, listed, suggestion
from penstock.studies.report import Study

ALL = "all"

STUDIES: Mapping[str, str] = {
    "resilience": "feasible-set size against the number of operators",
    "resilience-inputs": "the same against the number of inputs",
    "resilience-spread": "how much rivals vary from run to run",
    "lower-bounds": "what it costs not to know the lower bound of the rates",
    "clustering": "what clustering gains where streams cost CPU or bandwidth",
    "random-matrices": "the two bounds of the volume from below",
    "small-optimum": "small cases against the best plan there is",
    "balancing-global": "global plans by correlation, by load and at random, at growing load",
    "balancing-step": "what happens to global plans when the load rises",
    "balancing-pairwise": "pairwise algorithms from a connected start",
    "balancing-sensitivity": "which parameters matter to whom",
    "balancing-bursts": "global plans with pairwise balancing under on-off bursts",
    "hierarchy": "a tree of nodes that balances itself by negotiation, and large trees",
    "two-chains": "two chains that burst in turn, connected or cut",
    "sharing-88": "what reuse and projection bring on 88 nodes, against rivals without",
    "projection": "projected against measured times on a shared node, regular and bursty",
    "window-join": "a window join on a master and workers: delay, processor, communication",
    "live-bursts": "bursts, in turn and as recorded, on real nodes with and without balancing",
    "live-tree": "meters that report more often for an hour, on a real tree that negotiates or not",
    "live-join": "a join in parts on real nodes, one slowed, one group hot, and who moves groups",
    "live-join-rates": "a join on real nodes whose rate rises and falls, and how many parts it has",
    "live-projection": "latency and load as projected at submission and as measured, admission",
    "prediction": "runs on real nodes as the simulator predicted them",
    "power": "what devices spend when operators are shipped to them, against power, cost, size",
    "traffic": "plans at work on real nodes, at rates that grow to overload",
}
"""What each study shows, by the name of its module with - for _."""


def named(name: str) -> list[str]:
    """The studies meant by ``name``."""
    if name == ALL:
        return list(STUDIES)
    if name not in STUDIES:
        hint = f"There are {listed([*STUDIES, ALL])}. {suggestion(name, [*STUDIES, ALL])}".strip()
        raise InputError(f"no study {name}", hint=hint)
    return [name]


def study_called(name: str) -> Study:
    """The function of a study."""
    found: Study = import_module(f"penstock.studies.{name.replace('-', '_')}").study
    return found
