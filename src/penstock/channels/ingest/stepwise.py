"""What the ways of bringing a stream in have in common: steps that happen whole or not at all."""

from __future__ import annotations

from abc import ABC, abstractmethod

from penstock.channels.ingest.entrance import Entrance, Overtaken


class StepwiseIngest(ABC):
    """Brings rows in through an entrance, step by step.

    A step that fails leaves nothing behind and may be tried again.
    """

    def __init__(self, entrance: Entrance) -> None:
        self._entrance = entrance

    @property
    def is_finished(self) -> bool:
        return self._entrance.is_finished

    @property
    def is_held_back(self) -> bool:
        return self._entrance.is_held_back

    def step(self) -> bool:
        try:
            return self._entrance.is_open and self._step()
        except Overtaken:
            # What it took need not be what we would have taken.
            self._go_back()
            return True
        except BaseException:
            self._go_back()
            raise

    def close(self) -> None:
        """Lets go of what it holds outside of this process."""
        return None

    @abstractmethod
    def _step(self) -> bool:
        """Commits what is there now, up to a batch; whether there was anything."""

    @abstractmethod
    def _go_back(self) -> None:
        """Forgets all that is not in the channel."""
