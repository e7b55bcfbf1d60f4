"""Giving back what Spark needs only while queries start."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

_PLANNERS = "pyspark.sql.worker."


def release_planners() -> int:
    """Ends the Python processes Spark keeps for planning data sources; how many.

    Each holds 80 MB and is used once when a query starts. Spark forks them again, when it next
    needs one, from processes that are left alone: it does not get over losing those.
    """
    planners = [
        child
        for daemon in psutil.Process(os.getpid()).children(recursive=True)
        if _is_planner(daemon)
        for child in _children(daemon)
    ]
    for process in planners:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    return len(planners)


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return process.children()
    return []


def _is_planner(process: psutil.Process) -> bool:
    try:
        command = process.cmdline()
    except psutil.Error:
        return False
    return "pyspark.daemon" in command and any(word.startswith(_PLANNERS) for word in command)
