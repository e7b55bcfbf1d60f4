"""Ports on this machine: whether one is free, and what to say if it is not."""

from __future__ import annotations

import socket

from penstock.errors import UnreachableError, UsageError

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as server:
        # As servers do, so that a port whose last connections are fading counts as free.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port(after: int, tries: int = 100) -> int | None:
    """The next free port after ``after``; None if there is none near."""
    ports = range(after + 1, min(after + 1 + tries, 65_536))
    return next((port for port in ports if is_free(port)), None)


def check_port(port: int, option: str) -> None:
    """Raises unless ``port``, given with ``option``, can be listened on."""
    if not 1 <= port <= 65_535:
        raise UsageError(
            f"{option} {port} is not a port", hint="Give a number between 1024 and 65535."
        )
    if not is_free(port):
        other = free_port(port)
        hint = f"Stop it, or use another port: {option} {other}" if other else "Stop it."
        what = f"port {port} for {option} cannot be used: another program has it"
        if port < 1_024:
            what, hint = f"port {port} for {option} cannot be used", "Give one above 1023."
        raise UnreachableError(what, hint=hint)
