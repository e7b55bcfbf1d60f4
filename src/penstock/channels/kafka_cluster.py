"""A Kafka cluster as its clients see it: the brokers, and how to log in to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException, Producer

from penstock.errors import InputError, listed

_OURS = (
    "bootstrap.servers",
    "group.id",
    "transactional.id",
    "isolation.level",
    "enable.auto.commit",
    "enable.partition.eof",
    "auto.offset.reset",
)
"""What rows read and written once depend on."""

Made = TypeVar("Made", Consumer, Producer)


@dataclass(frozen=True)
class KafkaCluster:
    """The brokers by their addresses; ``client`` is a file of settings for whoever connects.

    A file, because it holds passwords: what is said about a deployment, and kept of it, names it.
    """

    brokers: str
    client: Path | None = None

    def consumer(self, group: str = "penstock-unused") -> Consumer:
        """A consumer that is told every offset and never joins its group.

        ``read_committed`` also makes a partition end at its last stable offset, so that every
        record before the end is decided. A reader is never idle, so brokers need not hold its
        fetches back.
        """
        return self._made(
            Consumer,
            {
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "allow.auto.create.topics": False,
                "fetch.wait.max.ms": 20,
            },
        )

    def producer(self, transactional_id: str, settings: Mapping[str, object]) -> Producer:
        """A producer that writes in transactions."""
        return self._made(Producer, {**settings, "transactional.id": transactional_id})

    def _made(self, kind: Callable[[dict[str, object]], Made], own: Mapping[str, object]) -> Made:
        # What goes wrong is raised, not printed.
        plain = {"bootstrap.servers": self.brokers, "client.id": "penstock", "log_level": 2}
        try:
            return kind({**own, **plain, **self.settings()})
        except KafkaException as error:
            if self.client is None:
                raise
            raise InputError(
                f"Kafka's client refuses the settings in {self.client}: {error.args[0].str()}",
                hint="The names and values are those of librdkafka.",
            ) from None

    def settings(self) -> dict[str, str]:
        """What the file says; nothing without one."""
        if self.client is None:
            return {}
        try:
            lines = self.client.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise InputError(
                f"the Kafka client settings {self.client} cannot be read: {reason.lower()}",
                hint="Check the path; every node must be able to read the file.",
            ) from None
        return dict(self._setting(at, line) for at, line in enumerate(lines, 1) if _says(line))

    def _setting(self, number: int, line: str) -> tuple[str, str]:
        # The line itself is not shown: it may hold a password.
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise InputError(
                f"line {number} of {self.client} is no setting",
                hint="Write name=value, for example security.protocol=SSL.",
            )
        if name in _OURS:
            raise InputError(
                f"line {number} of {self.client} sets {name}, which Penstock sets itself",
                hint=f"Remove it; the same holds for {listed(_OURS)}.",
            )
        return name, value


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")
