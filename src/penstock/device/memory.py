"""What a disseminator remembers of a broadcast, so that one that is killed goes on."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.channels.durable import read_record, write_record
from penstock.device.plans import OnAir

_ORIGIN_BYTES = 8


@dataclass(frozen=True)
class BroadcastMemory:
    """The plans of a broadcast, how often it has been started, and where it was heard.

    ``submission`` is the number of the deployment that is broadcast. ``origin`` tells a broadcast
    from every other of that name, before it or after it: batches are counted from 0 in each.
    """

    submission: int
    origin: str
    starts: int = 0
    port: int = 0
    plans: Mapping[str, OnAir] = field(default_factory=dict)

    @classmethod
    def recall(cls, path: Path, submission: int) -> BroadcastMemory:
        """What was remembered of this submission; of a former one only where it was heard."""
        known = read_record(path) or {}
        if known.get("submission") != submission:
            return cls(submission, secrets.token_hex(_ORIGIN_BYTES), port=known.get("port", 0))
        plans = {name: OnAir(**plan) for name, plan in known["plans"].items()}
        return cls(**{**known, "plans": plans})

    def keep(self, path: Path) -> None:
        """Writes it down for :meth:`recall`."""
        plans = {name: plan.to_record() for name, plan in self.plans.items()}
        write_record(path, {**vars(self), "plans": plans})

    def started(self) -> BroadcastMemory:
        """The memory of one more start."""
        return replace(self, starts=self.starts + 1)
