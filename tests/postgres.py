"""A PostgreSQL for the length of a test."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def temporary_postgres() -> Iterator[str]:
    """The address of a server on the loopback; skips the test where there is none to start."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not binaries:
        pytest.skip("no PostgreSQL server in /usr/lib/postgresql")
    owner = _owner()
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-"))
    if owner is not None:
        os.chown(folder, owner, -1)
    bin, port = binaries[-1].parent, _free_port()
    data = folder / "data"

    def call(*command: str | Path) -> None:
        # A server that stays keeps what it was given for output, so that must not be a pipe.
        subprocess.run(
            [str(one) for one in command],
            check=True,
            user=owner,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    try:
        call(bin / "initdb", "-D", data, "-U", "penstock", "-A", "trust", "--no-sync")
        settings = f"-c listen_addresses=127.0.0.1 -c port={port} -c fsync=off"
        settings += f" -c unix_socket_directories={folder}"
        call(bin / "pg_ctl", "-D", data, "-w", "-o", settings, "-l", folder / "log", "start")
        try:
            yield f"postgresql+psycopg://penstock@127.0.0.1:{port}/postgres"
        finally:
            call(bin / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _owner() -> int | None:
    """The user to run as: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_uid
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
