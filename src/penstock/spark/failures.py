"""What Spark says when it fails, in words a person can use."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.errors import FullDiskError, PenstockError, RunError

_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_OURS = re.compile(r"penstock\.errors\.\w+Error: (.+)")
_PYTHON = re.compile(r"^(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)


def is_passing(error: BaseException) -> bool:
    """Whether trying again may help: on a busy machine Spark gives a Python process that it
    starts only ten seconds to answer.
    """
    return "Python worker failed to connect back" in str(error)


def explained(error: BaseException, fragment: str, log: Path) -> PenstockError:
    """The error as one of ours: what happened in which fragment, and what to do."""
    if isinstance(error, PenstockError):
        return error
    text = str(error)
    if (isinstance(error, OSError) and error.errno == 28) or _DISK_FULL.search(text):
        return FullDiskError(
            f"{fragment} stopped: the disk under {log.parent.parent} is full",
            hint="Free some space and run the same command again; nothing accepted is lost.",
        )
    ours = _OURS.search(text)
    if ours:
        return RunError(f"{fragment} stopped: {ours.group(1)}", hint=f"Details are in {log}.")
    python = _PYTHON.findall(text)
    reason = ": ".join(python[-1]) if python else (text.splitlines() or [type(error).__name__])[0]
    return RunError(
        f"{fragment} stopped: {reason}",
        hint=f"Details are in {log}. The same command goes on from the last finished batch.",
    )
