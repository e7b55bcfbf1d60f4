"""What the members of a bundle give by a round, on its way to sinks and channels."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from penstock.channels.shared_round import SharedBatch, write_shared
from penstock.model.ids import PartId
from penstock.spark.bundles.bundle import Delivery
from penstock.spark.bundles.light_run import LightRun

_AT_ONCE = 8


@dataclass(frozen=True)
class _Message:
    """What one member gives, and how it lies in the file of the round, if it does."""

    run: LightRun
    delivery: Delivery
    composed: SharedBatch | None

    @property
    def number(self) -> int:
        """The number of the member."""
        return self.delivery.running.member.number

    @property
    def is_link(self) -> bool:
        """Whether telling it is making a link, and nothing else."""
        return self.composed is not None and len(self.run.sinks) == 1 and not self.run.taps


class Messengers:
    """Delivers rounds; ``folder`` is where a round's file lies until all channels have it.

    Small results go into one file for all channels, so a round costs one file and a link for each
    member that gives anything. Sinks that wait for somebody else's answer are served several at a
    time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="deliver")

    def deliver(
        self, runs: Mapping[PartId, LightRun], deliveries: Sequence[Delivery]
    ) -> dict[int, Exception]:
        """Gives sinks and channels what the members have given; what went wrong, by member."""
        messages: list[_Message] = []
        failed: dict[int, Exception] = {}
        for delivery in deliveries:
            try:
                messages += _compose(runs[delivery.running.member.name], delivery)
            except Exception as error:
                failed[delivery.running.member.number] = error
        path = self._folder / f"{uuid.uuid4().hex}.results"
        try:
            failed |= _write_shared(path, messages)
            waiting = [message for message in messages if message.number not in failed]
            return {**failed, **self._hand_out(path, waiting)}
        finally:
            path.unlink(missing_ok=True)

    def _hand_out(self, path: Path, messages: Sequence[_Message]) -> dict[int, Exception]:
        quick = [message for message in messages if message.is_link]
        others = [message for message in messages if not message.is_link]
        waiting = self._pool.map(lambda message: _tell(message, path), others)
        found = [_tell(message, path) for message in quick] + list(waiting)
        told = zip((*quick, *others), found, strict=True)
        return {message.number: error for message, error in told if error is not None}

    def close(self) -> None:
        """Waits for those under way."""
        self._pool.shutdown()


def _compose(run: LightRun, delivery: Delivery) -> list[_Message]:
    if not run.has_to_tell(delivery):
        return []
    return [_Message(run, delivery, run.compose(delivery))]


def _write_shared(path: Path, messages: Sequence[_Message]) -> dict[int, Exception]:
    """Writes the file of a round; where that fails, all who were to be in it fail."""
    composed = {
        message.number: message.composed for message in messages if message.composed is not None
    }
    try:
        if composed:
            write_shared(path, list(composed.values()))
    except Exception as error:
        return dict.fromkeys(composed, error)
    return {}


def _tell(message: _Message, path: Path) -> Exception | None:
    try:
        message.run.deliver(message.delivery, path, message.composed)
    except Exception as error:
        return error
    return None
