"""An agent without threads: its state is fed by hand, and what it wants done is done at once."""

from __future__ import annotations

from collections.abc import Callable

from penstock.control.agent import Agent
from penstock.control.node_events import AskedToLeave, Event, Ticked
from penstock.control.node_instructions import JoinSystem, LogWarning, NodeInstruction, RenewLease


class Clock:
    """A clock that stands still until it is put forward."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class SteppedNode:
    """Drives an agent: every step takes a tenth of a second by its own clock.

    ``held`` chooses instructions that are not carried out for the time being; ``done`` is what was.
    """

    def __init__(self, agent: Agent, clock: Clock) -> None:
        self.agent = agent
        self.clock = clock
        self.held: Callable[[NodeInstruction], bool] = lambda _: False
        self.to_do: list[NodeInstruction] = []
        self.done: list[NodeInstruction] = []
        self.warnings: list[str] = []

    def settle(self, seconds: float = 3.0) -> None:
        """Time passes, and whatever is to be done is done at once, unless it is held up."""
        for _ in range(round(10 * seconds)):
            if self.agent.state.has_ended:
                return
            self.clock.now_s += 0.1
            self.feed(Ticked())

    def feed(self, event: Event) -> None:
        """Lets something happen, and all that follows at once."""
        self._handle(event)
        while due := [one for one in self.to_do if not self.held(one)]:
            self.to_do.remove(due[0])
            self.done.append(due[0])
            self._handle(self.agent.answer(due[0]))

    def _handle(self, event: Event) -> None:
        for given in self.agent.state.handle(event, self.clock.now_s):
            if isinstance(given, LogWarning):
                self.warnings.append(given.text)
            else:
                self.to_do.append(given)

    def leave(self) -> None:
        """It is asked to leave, and does."""
        self.held = lambda _: False
        self.feed(AskedToLeave())
        self.settle()
        assert self.agent.state.has_ended

    def lose_lease(self) -> None:
        """Renewals come too late, until the lease is over and everything has stopped."""
        held = self.held
        self.held = lambda one: isinstance(one, RenewLease | JoinSystem) or held(one)
        while self.agent.state.lease.life is not None:
            self.settle(0.1)
        self.to_do = [one for one in self.to_do if not isinstance(one, RenewLease)]
        self.held = held
