"""A node's part in what nodes tell each other: runs the protocol, sends what it says."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from penstock.control.carriers import Carrier
from penstock.control.catalog import Catalog
from penstock.control.letters import Letter, WordSent
from penstock.control.load_gossip import (
    GossipEvent,
    GossipState,
    Load,
    LoadGossip,
    LoadMeasured,
    TellLoads,
)
from penstock.control.tree_talk import TreeTalk
from penstock.errors import PenstockError
from penstock.model.measurements import NodeSample
from penstock.model.protocol import Tick

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Measured:
    load: Load
    life: str


class Talk:
    """Tells others the load of a node and keeps what they tell, from :meth:`begin` to :meth:`end`.

    Where nodes negotiate in a tree, ``tree`` has that part of the conversation.

    What goes wrong is logged; a message that is lost is not sent again.
    """

    def __init__(
        self,
        node: str,
        catalog: Catalog,
        carrier: Carrier,
        protocol: LoadGossip | None = None,
        clock: Callable[[], float] = time.monotonic,
        tree: TreeTalk | None = None,
    ) -> None:
        self._node = node
        self._tree = tree
        self._catalog = catalog
        self._carrier = carrier
        self._protocol = protocol or LoadGossip()
        self._clock = clock
        self._state = GossipState(node)
        self._rng = np.random.default_rng()
        self._inbox: queue.SimpleQueue[Letter | _Measured | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._address = ""
        self._unreachable: set[str] = set()

    def join(self, life: str) -> None:
        """The node has joined: its address is made known."""
        try:
            if not self._address:
                self._address = self._carrier.open(self._node, self._deliver)
            self._catalog.publish(self._node, life, self._address)
        except (PenstockError, OSError) as error:
            # Without the others' word it works all the same.
            log.warning("node %s takes no messages: %s", self._node, error)
            return
        if self._tree is not None:
            self._tree.join(life)
        if self._thread is None:
            name = f"talk-{self._node}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def _deliver(self, letter: Letter) -> None:
        if letter.negotiation is None:
            self._inbox.put(letter)
        elif self._tree is not None:
            self._tree.hear(letter)

    def measure(self, measured: NodeSample, life: str) -> None:
        """The node has measured itself."""
        self._inbox.put(_Measured(Load(measured.utilisation, measured.memory_bytes), life))
        if self._tree is not None:
            self._tree.note(measured)

    def end(self) -> None:
        """Says and hears nothing any more."""
        if self._tree is not None:
            self._tree.end()
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join()
            self._carrier.close(self._node)

    def _run(self) -> None:
        while True:
            came: Letter | _Measured | Tick | None = Tick()
            with suppress(queue.Empty):
                pause_s = self._protocol.wake_at_s(self._state) - self._clock()
                came = self._inbox.get(timeout=max(0.001, pause_s))
            if came is None:
                return
            try:
                self.take(came)
            except Exception as error:
                is_known = isinstance(error, PenstockError)
                log.warning("node %s could not talk: %s", self._node, error, exc_info=not is_known)

    def take(self, came: Letter | _Measured | Tick) -> None:
        """Hands the protocol what has come, sends what it says, keeps what it knows."""
        if isinstance(came, _Measured):
            self._step(LoadMeasured(came.load, came.life, tuple(self._catalog.contacts())))
            now_s = self._clock()
            self._catalog.note_heard(self._node, self._protocol.ages_s(self._state, now_s))
        else:
            self._step(came.event() if isinstance(came, Letter) else came)

    def _step(self, event: GossipEvent | Tick) -> None:
        self._state, messages, _ = self._protocol.handle(
            self._state, event, self._clock(), self._rng
        )
        contacts = self._catalog.contacts() if messages else {}
        for message in messages:
            if message.to in contacts:
                self._send(contacts[message.to].address, message)

    def _send(self, address: str, message: TellLoads) -> None:
        own = self._state.own
        if own is None:
            return
        loads = {node: WordSent.of(word) for node, word in message.words.items()}
        letter = Letter(sender=self._node, life=own.life, to=message.to, loads=loads)
        try:
            self._carrier.send(address, letter)
            self._unreachable.discard(message.to)
        except PenstockError as error:
            if message.to not in self._unreachable:
                # Said once: until its lease has run out, it is told in vain every second.
                log.warning("%s", error)
            self._unreachable.add(message.to)
