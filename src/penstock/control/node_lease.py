"""The lease of a node, as the node itself reckons it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.control.node_instructions import JoinSystem, RenewLease

_MARGIN_S = 0.1


class Lease:
    """Since when this process is the node, and whether it still may take itself for it.

    A lease counts from before the catalog was asked for it, so it ends here no later than others
    see it end. ``life`` is the incarnation under which it is held; None without a lease.
    """

    def __init__(
        self, next_number: Callable[[], int], lease_s: float, renew_every_s: float, again_s: float
    ) -> None:
        self.life: str | None = None
        self.has_been_held = False
        self._next_number = next_number
        self._lease_s = lease_s
        self._renew_every_s = renew_every_s
        self._again_s = again_s
        self._asked_s = 0.0
        self._tried_s = -float("inf")
        self._asking: int | None = None

    @property
    def margin_s(self) -> float:
        """How long before its end it is given up."""
        return min(_MARGIN_S, self._lease_s / 4)

    @property
    def is_asked_for(self) -> bool:
        """Whether an answer of the catalog is waited for."""
        return self._asking is not None

    def is_over(self, now_s: float) -> bool:
        """Whether it has run out, or is about to."""
        return self.life is not None and now_s - self._asked_s > self._lease_s - self.margin_s

    def ask(self, now_s: float) -> list[JoinSystem | RenewLease]:
        """What to ask of the catalog now."""
        # Whoever never had one waits for a place that somebody may leave at any moment.
        every_s = self._renew_every_s if self.has_been_held else self._again_s
        if self.is_asked_for or now_s - self._tried_s < every_s:
            return []
        self._tried_s, self._asking = now_s, self._next_number()
        if self.life is None:
            return [JoinSystem(self._asking)]
        return [RenewLease(self._asking, self.life)]

    def is_answer(self, number: int) -> bool:
        """Takes an answer; False if it is not the one that is waited for."""
        if number != self._asking:
            return False
        self._asking = None
        return True

    def begin(self, life: str, asked_s: float) -> None:
        """The node has joined."""
        self.life, self._asked_s, self.has_been_held = life, asked_s, True

    def prolong(self, asked_s: float) -> None:
        """The lease was renewed."""
        self._asked_s = asked_s

    def lose(self) -> None:
        """It is over; a renewal that is under way is not waited for."""
        self.life = self._asking = None
