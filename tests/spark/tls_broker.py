"""TLS in front of the mock cluster, which itself speaks plain text only.

A broker tells its clients where it is, so its address in what it says is replaced by this one's:
both are as long as each other, and nothing else has to change.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread


@dataclass(frozen=True)
class Certificate:
    """A certificate for 127.0.0.1 that signs itself, and its key."""

    certificate: Path
    key: Path


def new_certificate(folder: Path) -> Certificate:
    made = Certificate(folder / "broker.pem", folder / "broker.key")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", str(made.key), "-out", str(made.certificate),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return made


@contextmanager
def tls_before(address: str, given: Certificate) -> Iterator[str]:
    """The address at which the plain broker at ``address`` is reached by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(given.certificate, given.key)
    host, _, port = address.rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own_port = listener.getsockname()[1]
        told, instead = (
            host.encode() + number.to_bytes(4, "big") for number in (int(port), own_port)
        )
        door = _Door(listener, context, (host, int(port)), told, instead)
        Thread(target=door.serve, daemon=True).start()
        yield f"127.0.0.1:{own_port}"
        listener.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True)
class _Door:
    listener: socket.socket
    context: ssl.SSLContext
    broker: tuple[str, int]
    told: bytes
    instead: bytes

    def serve(self) -> None:
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            Thread(target=self._connect, args=(plain,), daemon=True).start()

    def _connect(self, plain: socket.socket) -> None:
        try:
            client = self.context.wrap_socket(plain, server_side=True)
        except (ssl.SSLError, OSError):
            plain.close()
            return
        with client, socket.create_connection(self.broker) as broker:
            back = Thread(target=self._carry, args=(broker, client), daemon=True)
            back.start()
            self._carry(client, broker)
            back.join()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while part := source.recv(1 << 16):
                target.sendall(part.replace(self.told, self.instead))
        except OSError:
            pass
        finally:
            for one in (source, target):
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
