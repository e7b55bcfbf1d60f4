"""What is balanced, whether simulated or running: it is looked at, and told what to do.

Two of them: ``sim.balancing.BalancedSystem`` and ``control.balancing.LiveWorld``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from penstock.balance.settings import BalanceSettings
from penstock.balance.situation import Situation
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.balance.plan import MovePlan


@dataclass(frozen=True, eq=False)
class Observation:
    """How a system is: who is where, with which loads.

    ``names`` and ``nodes`` are in the order of the situation's numbers, which is None while too
    little is known. ``epochs`` say how often each unit has changed its owner.
    """

    names: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    situation: Situation | None = None
    is_moving: bool = False
    epochs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class CarryOut:
    """The moves of a plan are to begin, if the system still is as it was seen."""

    plan: MovePlan
    seen: Observation


@dataclass(frozen=True, eq=False)
class Suggest:
    """What would be moved is to be told, if the system still is as it was seen."""

    plan: MovePlan
    seen: Observation


@dataclass(frozen=True)
class TellLate:
    """There is no plan after so long: everything stays where it is."""

    policy: str
    limit_s: float


@dataclass(frozen=True, eq=False)
class TellFailure:
    """No plan could be made."""

    policy: str
    error: PenstockError


BalanceInstruction = CarryOut | Suggest | TellLate | TellFailure


class World(Protocol):
    """What is balanced."""

    @property
    def now_s(self) -> float: ...

    def observe(self, settings: BalanceSettings) -> Observation:
        """How it is now, with loads as the settings want them."""

    def enact(self, instruction: BalanceInstruction) -> bool:
        """Does it; False if that was not possible, and nothing has been done."""
