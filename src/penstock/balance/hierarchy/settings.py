"""How a tree is balanced: thresholds, rhythm, and the choices that are open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from penstock.balance.hierarchy.messages import Portion
from penstock.balance.hierarchy.transfers import DownRule
from penstock.errors import InputError


class Accept(StrEnum):
    """How far a neighbour fills itself up with what it is offered."""

    UPPER = "upper"
    TARGET = "target"


class TransferOrder(StrEnum):
    """In which order a node lists what it could transfer; others take the first that fit."""

    FOUND = "found"
    LARGEST = "largest"


class Utilisation(StrEnum):
    """What is balanced."""

    MEMORY = "memory"
    CPU = "cpu"
    MAX = "max"


@dataclass(frozen=True)
class HierarchySettings:
    """Thresholds in percent of a node, lengths of time in seconds; checked when built.

    ``answer_s`` is how long replies are waited for, ``hold_s`` how long a negotiation lasts at
    most on either side after its last word. ``rest_periods`` is how long an operator that moved
    stays where it is. With ``relay`` a node that had no room for what it was offered, and is above
    its target, makes room by an offer of its own, of which others take up to their target only.

    >>> HierarchySettings(lower=40, upper=60).target
    50.0
    """

    lower: float = 40.0
    upper: float = 60.0
    period_s: float = 5.0
    utilisation: Utilisation = Utilisation.MEMORY
    accept: Accept = Accept.UPPER
    rule: DownRule = DownRule.NARROW
    order: TransferOrder = TransferOrder.FOUND
    rest_periods: float = 3.0
    answer_s: float = 1.0
    hold_s: float = 3.0
    margin: float = 1.0
    relay: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.lower < self.upper <= 100:
            raise InputError(
                f"the thresholds are {self.lower:g} and {self.upper:g} percent",
                hint="lower has to be below upper, both between 0 and 100.",
            )
        if not 0 < self.period_s < float("inf"):
            raise InputError(
                f"nodes would check their load every {self.period_s:g} s",
                hint="Give a period above zero.",
            )
        if not 0 < self.answer_s < self.hold_s:
            raise InputError(
                f"answers are waited for {self.answer_s:g} s in a negotiation of at most "
                f"{self.hold_s:g} s",
                hint="Give answers more than no time, and the negotiation more than that.",
            )
        if not self.rest_periods >= 0:
            raise InputError(
                f"operators rest for {self.rest_periods:g} periods",
                hint="Give zero or more.",
            )
        if not self.margin >= 0:
            raise InputError(
                f"nodes stay {self.margin:g} points below upper", hint="Give zero or more."
            )

    @property
    def target(self) -> float:
        """What nodes aim at, half way between the thresholds."""
        return (self.lower + self.upper) / 2

    def room(self, utilisation: float, is_relay: bool = False) -> float:
        """How much a node that is so full accepts of what it is offered."""
        if utilisation > self.upper:
            return 0.0
        is_upper = self.accept is Accept.UPPER and not is_relay
        limit = self.upper - self.margin if is_upper else self.target
        return round(limit - utilisation, 9)

    def sort(self, portions: Iterable[Portion]) -> tuple[Portion, ...]:
        """Transfers in the order in which they are to be considered."""
        found = tuple(portions)
        if self.order is TransferOrder.FOUND:
            return found
        return tuple(sorted(found, key=lambda portion: -portion.size))
