"""The lease of a node, as the node itself reckons it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.control.node_instructions import JoinSystem, RenewLease

_MARGIN_S = 0.1
_STANDSTILL_S = 1.0
"""A process that does nothing for so long was suspended, or got no processor."""


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
        self._seen_s: float | None = None
        self._standstill_s = 0.0

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

    def pass_time(self, now_s: float) -> None:
        """Notes how long nothing was done in this process since the lease was renewed."""
        if self._seen_s is not None:
            self._standstill_s = max(self._standstill_s, now_s - self._seen_s)
        self._seen_s = now_s

    def why_not_renewed(self, now_s: float) -> str:
        """What kept it from being renewed in time, as far as that can be seen from here.

        >>> lease = Lease(lambda: 1, lease_s=5.0, renew_every_s=1.0, again_s=0.1)
        >>> for now_s in (0.0, 0.1, 6.3): lease.pass_time(now_s)
        >>> lease.why_not_renewed(6.3)
        'this process stood still for 6.2 s'
        """
        found = []
        if self._standstill_s >= _STANDSTILL_S:
            found.append(f"this process stood still for {self._standstill_s:.1f} s")
        if self.is_asked_for and now_s - self._tried_s >= _STANDSTILL_S:
            found.append(f"the catalog has not answered for {now_s - self._tried_s:.1f} s")
        return ", ".join(found) or "it could not be renewed"

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
        self._standstill_s = 0.0

    def prolong(self, asked_s: float) -> None:
        """The lease was renewed."""
        self._asked_s = asked_s
        self._standstill_s = 0.0

    def lose(self) -> None:
        """It is over; a renewal that is under way is not waited for."""
        self.life = self._asking = None
