"""The station: takes registrations on a loopback port and sends the same bytes to all receivers.

One thread, no blocking: who reads too slowly misses whole cycles, and holds up nobody.
"""

from __future__ import annotations

import json
import logging
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import InputError, PenstockError

HOST = "127.0.0.1"
MOST_BEHIND_BYTES = 64 << 20
_LONGEST_LINE = 1 << 16
_PATIENCE_S = 5.0
_MOST_WAITING = 256
_MOST_LEFT = 1_000
_SEND_BYTES = 4 << 20

Answer = dict[str, Any]
Answerer = Callable[[Mapping[str, Any]], tuple[Answer, bool]]
"""Answers a request; whether whoever asked stays to listen."""

log = logging.getLogger(__name__)


@dataclass
class Receiver:
    """Somebody who is connected: what it asked for, what it last said, and what it still gets."""

    socket: socket.socket
    since_s: float
    asked: Mapping[str, Any] = field(default_factory=dict)
    is_tuned: bool = False
    is_leaving: bool = False
    waiting: deque[memoryview] = field(default_factory=deque)
    waiting_bytes: int = 0
    heard: bytearray = field(default_factory=bytearray)
    report: Mapping[str, Any] = field(default_factory=dict)
    missed_cycles: int = 0


class Station:
    """Sends cycles to all who were let in by ``answer``; ``left`` are the last who hung up."""

    def __init__(self, port: int, answer: Answerer) -> None:
        self._answer = answer
        self._selector = selectors.DefaultSelector()
        self._listening = _listen(port)
        self._selector.register(self._listening, selectors.EVENT_READ)
        self.receivers: dict[socket.socket, Receiver] = {}
        self.left: deque[Receiver] = deque(maxlen=_MOST_LEFT)

    @property
    def port(self) -> int:
        port: int = self._listening.getsockname()[1]
        return port

    @property
    def tuned(self) -> list[Receiver]:
        """Those who listen."""
        return [receiver for receiver in self.receivers.values() if receiver.is_tuned]

    def send(self, data: bytes) -> None:
        """Puts a whole cycle out to all who are not too far behind."""
        view = memoryview(data)
        for receiver in self.tuned:
            if receiver.waiting_bytes > MOST_BEHIND_BYTES:
                receiver.missed_cycles += 1
                continue
            self._queue(receiver, view)

    def _queue(self, receiver: Receiver, view: memoryview) -> None:
        receiver.waiting.append(view)
        receiver.waiting_bytes += len(view)
        if len(receiver.waiting) == 1:
            self._write(receiver)

    def pump(self, until_s: float) -> None:
        """Serves everybody until this moment of the monotonic clock."""
        while True:
            left_s = until_s - time.monotonic()
            for key, events in self._selector.select(max(0.0, left_s)):
                if key.fileobj is self._listening:
                    self._accept()
                    continue
                assert isinstance(key.fileobj, socket.socket)
                receiver = self.receivers.get(key.fileobj)
                if receiver is not None and events & selectors.EVENT_WRITE:
                    self._write(receiver)
                if receiver is not None and events & selectors.EVENT_READ:
                    self._read(receiver)
            self._drop_silent()
            if time.monotonic() >= until_s:
                return

    @property
    def is_drained(self) -> bool:
        """Whether everything has been sent."""
        return all(not receiver.waiting for receiver in self.receivers.values())

    def close(self) -> None:
        """Ends all connections."""
        for receiver in list(self.receivers.values()):
            self._leave(receiver)
        self._selector.unregister(self._listening)
        self._listening.close()
        self._selector.close()

    def _accept(self) -> None:
        try:
            made, _ = self._listening.accept()
        except OSError:
            return
        if len(self.receivers) >= _MOST_WAITING + len(self.tuned):
            made.close()
            return
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        self.receivers[made] = Receiver(made, time.monotonic())
        self._selector.register(made, selectors.EVENT_READ)

    def _drop_silent(self) -> None:
        now_s = time.monotonic()
        for receiver in list(self.receivers.values()):
            is_quiet = not receiver.is_tuned and now_s - receiver.since_s > _PATIENCE_S
            if is_quiet:
                self._leave(receiver)

    def _read(self, receiver: Receiver) -> None:
        try:
            data = receiver.socket.recv(_LONGEST_LINE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        receiver.heard += data
        if not data or len(receiver.heard) > _LONGEST_LINE:
            self._leave(receiver)
            return
        while b"\n" in receiver.heard and receiver.socket in self.receivers:
            line, _, rest = bytes(receiver.heard).partition(b"\n")
            receiver.heard = bytearray(rest)
            self._on_line(receiver, line)

    def _on_line(self, receiver: Receiver, line: bytes) -> None:
        try:
            said = json.loads(line)
            if not isinstance(said, dict):
                raise ValueError("no object")
        except ValueError:
            self._leave(receiver)
            return
        if receiver.is_tuned:
            receiver.report = said
            return
        try:
            answer, stays = self._answer(said)
        except PenstockError as error:
            answer, stays = {"error": error.what, "hint": error.hint}, False
        except Exception:
            log.exception("a request could not be answered")
            answer, stays = {"error": "the station failed", "hint": "Its log says more."}, False
        receiver.asked = said
        self._queue(receiver, memoryview(json.dumps(answer).encode() + b"\n"))
        receiver.is_tuned = stays
        receiver.is_leaving = not stays
        if not stays and not receiver.waiting:
            self._leave(receiver)

    def _write(self, receiver: Receiver) -> None:
        try:
            while receiver.waiting:
                view = receiver.waiting[0]
                sent = receiver.socket.send(view[:_SEND_BYTES])
                receiver.waiting_bytes -= sent
                if sent < len(view):
                    receiver.waiting[0] = view[sent:]
                else:
                    receiver.waiting.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self._leave(receiver)
            return
        if receiver.is_leaving and not receiver.waiting:
            self._leave(receiver)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if receiver.waiting else 0)
        with suppress(KeyError):
            if self._selector.get_key(receiver.socket).events != wanted:
                self._selector.modify(receiver.socket, wanted)

    def _leave(self, receiver: Receiver) -> None:
        if self.receivers.pop(receiver.socket, None) is not None:
            with suppress(KeyError):
                self._selector.unregister(receiver.socket)
            receiver.socket.close()
            if receiver.is_tuned:
                self.left.append(receiver)


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        if port:
            listening.close()
            return _listen(0)  # Somebody else has it now: receivers find the new one.
        raise InputError(f"no port for the broadcast: {error.strerror}") from None
    listening.listen(128)
    listening.setblocking(False)
    return listening
