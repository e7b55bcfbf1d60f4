"""How messages get from node to node: over loopback, or inside one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from penstock.control.catalog import Catalog
from penstock.control.letters import Letter
from penstock.control.message_server import MessageServer, post

_KNOWN_FOR_S = 1.0


class Carrier(Protocol):
    """How messages get from node to node."""

    def open(self, node: str, deliver: Callable[[Letter], None]) -> str:
        """Takes messages for a node from now on; its address."""
        ...

    def send(self, address: str, letter: Letter) -> None:
        """Sends a message; raises if that is known not to work."""
        ...

    def close(self, node: str) -> None:
        """Takes no more messages for a node."""
        ...


class InlineCarrier:
    """Messages between nodes of one process."""

    def __init__(self) -> None:
        self._deliver: dict[str, Callable[[Letter], None]] = {}

    def open(self, node: str, deliver: Callable[[Letter], None]) -> str:
        self._deliver[node] = deliver
        return f"inline:{node}"

    def send(self, address: str, letter: Letter) -> None:
        deliver = self._deliver.get(address.removeprefix("inline:"))
        if deliver is not None:
            deliver(letter)

    def close(self, node: str) -> None:
        self._deliver.pop(node, None)


class LoopbackCarrier:
    """Messages between processes of one machine."""

    def __init__(self, token: str, catalog: Catalog) -> None:
        self._token = token
        self._catalog = catalog
        self._known: tuple[float, Mapping[str, str]] = (-float("inf"), {})
        self._servers: dict[str, MessageServer] = {}

    def open(self, node: str, deliver: Callable[[Letter], None]) -> str:
        self._servers[node] = MessageServer(node, self._token, self._lives, deliver)
        return self._servers[node].address

    def send(self, address: str, letter: Letter) -> None:
        post(address, self._token, letter)

    def close(self, node: str) -> None:
        self._servers.pop(node).close()

    def _lives(self) -> Mapping[str, str]:
        """Not asked of the catalog for every message."""
        at_s, lives = self._known
        if time.monotonic() - at_s > _KNOWN_FOR_S:
            lives = {name: contact.life for name, contact in self._catalog.contacts().items()}
            self._known = (time.monotonic(), lives)
        return lives
