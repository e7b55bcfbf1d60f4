"""How a simulated system behaves, apart from the network that runs on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import InputError, listed, suggestion
from penstock.sim.moving import HandOverTimes

_CHOICES = {
    "selectivity": ("random", "expected"),
    "service": ("constant", "exponential"),
    "discipline": ("fcfs", "round-robin"),
}


@dataclass(frozen=True)
class Physics:
    """How tuples are chosen, processed, queued, sent and moved.

    ``selectivity`` is "random" (each tuple by chance) or "expected" (exact on average);
    ``service`` is "constant" or "exponential"; ``discipline`` is "fcfs" or "round-robin" with
    ``turn`` tuples at a time; ``delay_s`` is between two nodes. ``windows_s`` makes operators
    collect for so long and send on what their selectivity leaves of it. Fixed loads are worked off
    in one piece every ``round_s``.
    """

    selectivity: str = "random"
    service: str = "constant"
    discipline: str = "fcfs"
    turn: int = 1
    delay_s: float = 0.0
    windows_s: Mapping[str, float] = field(default_factory=dict)
    hand_over: HandOverTimes = field(default_factory=HandOverTimes)
    round_s: float = 1.0

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            given = getattr(self, name)
            if given not in known:
                hint = f"There are {listed(known)}. {suggestion(given, known)}".strip()
                raise InputError(f"no {name} called {given}", hint=hint)
        if not (0 <= self.delay_s < math.inf and self.turn >= 1):
            raise InputError(
                f"a delay of {self.delay_s:g} s and turns of {self.turn} tuples",
                hint="Give a delay of zero or more and turns of at least one.",
            )
        if not 0 < self.round_s < math.inf:
            raise InputError(f"rounds of {self.round_s:g} s", hint="Give more than zero.")
        for name, window_s in self.windows_s.items():
            if not 0 < window_s < math.inf:
                raise InputError(
                    f"operator {name} collects for {window_s:g} s", hint="Give more than zero."
                )
