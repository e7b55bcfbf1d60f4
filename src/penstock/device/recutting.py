"""Re-cutting: following what is measured, with plans that change between two cycles."""

from __future__ import annotations

from penstock.control.home import Home
from penstock.device.broadcaster import Broadcaster


class Recutter:
    """Looks now and then whether other cuts would be better."""

    def __init__(self, home: Home, broadcaster: Broadcaster) -> None:
        self._home, self._broadcaster = home, broadcaster

    def tick(self) -> None:
        """Called after every cycle."""
