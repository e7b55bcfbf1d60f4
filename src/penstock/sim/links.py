"""Simulated links: how long a message takes, and whether it comes at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from penstock.errors import InputError


class Chance(Protocol):
    """Where numbers from 0 to 1 come from."""

    def random(self) -> float:
        """The next one."""
        ...


@dataclass(frozen=True)
class Links:
    """How messages travel: mostly near the shortest delay, a few take up to the longest.

    ``loss`` and ``doubling`` are the shares of messages that come never and twice.
    """

    shortest_s: float = 0.02
    longest_s: float = 0.02
    loss: float = 0.0
    doubling: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.shortest_s <= self.longest_s or not 0 <= self.loss + self.doubling <= 1:
            raise InputError(f"no network is like this: {self}", hint="Give shares and seconds.")

    def delays_s(self, rng: Chance) -> Iterator[float]:
        """How long each copy of a message takes: none if it is lost, two if it is doubled.

        Copies and messages that are delayed differently overtake each other.
        """
        chance = rng.random()
        copies = 0 if chance < self.loss else 1
        copies += chance >= 1 - self.doubling
        for _ in range(copies):
            yield self.shortest_s + (self.longest_s - self.shortest_s) * rng.random() ** 4
