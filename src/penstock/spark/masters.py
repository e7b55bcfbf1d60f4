"""Spark masters: how they are written, and by which address of this machine they see it."""

from __future__ import annotations

import re
import socket

from penstock.errors import UnreachableError, UsageError

FORMS = "local, local[N], local-cluster[N,CORES,MEGABYTES] and spark://HOST:PORT"
_LOCAL = re.compile(r"local(\[(\d+|\*)\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_STANDALONE = re.compile(r"spark://([^\s/,]+:\d+)(,[^\s/,]+:\d+)*")
_ANSWER_S = 5.0
_LOOPBACK = "127.0.0.1"


def checked(master: str) -> str:
    """The master, if it is written like one.

    >>> checked("local[2]"), checked("spark://a:7077,b:7077")
    ('local[2]', 'spark://a:7077,b:7077')
    """
    if is_local(master) or is_standalone(master):
        return master
    raise UsageError(f"no Spark master {master}", hint=f"There are {FORMS}.")


def is_local(master: str) -> bool:
    return _LOCAL.fullmatch(master) is not None


def is_standalone(master: str) -> bool:
    return _STANDALONE.fullmatch(master) is not None


def resource_of(node: str) -> str:
    """The custom resource that the worker of a node has, and no other."""
    return f"penstock_{node}"


def address_towards(master: str) -> str:
    """The address of this machine that the master sees; raises if no master answers."""
    if is_local(master):
        return _LOOPBACK
    problems = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), _ANSWER_S) as connection:
                return str(connection.getsockname()[0])
        except (OSError, OverflowError) as error:
            problems.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise UnreachableError(
        f"no Spark master answers at {master} ({'; '.join(problems)})",
        hint="Is it running, and is this its address?",
    )
