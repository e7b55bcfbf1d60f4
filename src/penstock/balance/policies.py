"""The policies by name: ours, and those that other packages bring along.

A package brings one along by an entry point of the group ``penstock.policies`` that names its
class; see ``docs/balancing.md``. What a policy needs is loaded when it plans: its loops are
compiled, which takes a while, and many only ask which policies there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

import numpy as np

from penstock.balance.policy import Policy
from penstock.balance.situation import Situation, Thresholds
from penstock.errors import InputError, listed, suggestion
from penstock.model.brought import with_brought

if TYPE_CHECKING:
    from penstock.balance.plan import MovePlan

GROUP = "penstock.policies"


class OneWay(Policy):
    """From the heavier node of a pair to the lighter, best score first (COR-BAL)."""

    name = "one-way"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.pairwise import one_way

        return one_way(situation, thresholds)


class Redistribution(Policy):
    """Both nodes of a pair are emptied and dealt out afresh (COR-RE)."""

    name = "redistribution"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.pairwise import redistribution

        return redistribution(situation, thresholds)


class SelectiveExchange(Policy):
    """One-way, then single operators change sides (COR-SE)."""

    name = "selective-exchange"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.pairwise import selective_exchange

        return selective_exchange(situation, thresholds)


class ImprovedRedistribution(Policy):
    """Redistribution, also of balanced pairs that are about to be overloaded (COR-RE-IMP)."""

    name = "improved-redistribution"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.pairwise import improved_redistribution

        return improved_redistribution(situation, thresholds)


class ImprovedSelectiveExchange(Policy):
    """Selective exchange, also of balanced pairs that are about to be overloaded (COR-SE-IMP)."""

    name = "improved-selective-exchange"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.pairwise import improved_selective_exchange

        return improved_selective_exchange(situation, thresholds)


class Correlation(ImprovedSelectiveExchange):
    """The one to begin with."""

    name = "correlation"


class GlobalCorrelationPolicy(Policy):
    """All afresh by correlation, whatever has to move for it (COR-GLB)."""

    name = "global"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.global_correlation import global_correlation

        return global_correlation(situation, thresholds)


class LargestLoadFirstPolicy(Policy):
    """From the heavier node of a pair to the lighter, the largest operator first (LLF-BAL)."""

    name = "largest-load-first"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.rivals import largest_load_first

        return largest_load_first(situation, thresholds)


class RandomSelection(Policy):
    """From the heavier node of a pair to the lighter, in random order (RAND-BAL)."""

    name = "random"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.rivals import random_selection

        return random_selection(situation, rng, thresholds)


class GlobalLargestLoadFirst(Policy):
    """All afresh: the largest operator first, each to the least loaded node (LLF-GLB)."""

    name = "global-largest-load-first"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.rivals import global_largest_load_first

        return global_largest_load_first(situation)


class GlobalRandom(Policy):
    """All afresh: in random order, each to the least loaded node (RAND-GLB)."""

    name = "global-random"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.rivals import global_random

        return global_random(situation, rng)


class Off(Policy):
    """Everything stays; only operators whose node has left get a new one."""

    name = "off"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        from penstock.balance.pairwise import settled
        from penstock.balance.plan import move_plan

        return move_plan("off", situation, settled(situation).assignment)


OWN: tuple[type[Policy], ...] = (
    Correlation,
    OneWay,
    Redistribution,
    SelectiveExchange,
    ImprovedRedistribution,
    ImprovedSelectiveExchange,
    GlobalCorrelationPolicy,
    LargestLoadFirstPolicy,
    RandomSelection,
    GlobalLargestLoadFirst,
    GlobalRandom,
    Off,
)


def policies(brought: Iterable[EntryPoint] = ()) -> Mapping[str, type[Policy]]:
    """Our policies and those that entry points name, by name; raises where one is not fit."""
    return with_brought(Policy, OWN, brought)  # type: ignore[type-abstract]


def policy_called(name: str) -> type[Policy]:
    """The policy of that name, our own or brought along."""
    own = policies()
    if name in own:
        return own[name]
    known = policies(entry_points(group=GROUP))
    if name not in known:
        hint = f"There are {listed(known)}. {suggestion(name, known)}".strip()
        raise InputError(f"no balancing policy {name}", hint=hint)
    return known[name]
