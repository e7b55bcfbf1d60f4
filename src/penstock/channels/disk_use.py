"""What files take, and what is free beside them."""

from __future__ import annotations

import shutil
from pathlib import Path


def folder_bytes(folder: Path) -> int:
    """What the files in a folder take; those that go while it is looked at do not count."""
    found = 0
    for path in folder.glob("*"):
        try:
            found += path.stat().st_size
        except FileNotFoundError:
            continue
    return found


def free_bytes(folder: Path) -> int:
    """What is free on the disk where a folder is, or will be."""
    path = folder.absolute()
    there = next(known for known in (path, *path.parents) if known.exists())
    return shutil.disk_usage(there).free
