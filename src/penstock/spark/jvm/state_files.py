"""Spark's files of state: which of them it is that Spark cannot read.

Spark says that it cannot load a state, and rarely why; whoever has to restore a file needs to know
which.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.channels.durable import RESTORE
from penstock.errors import RunError
from penstock.spark.jvm.gateway import Jvm

_NOT_LOADED = "CANNOT_LOAD_STATE_STORE"
_NAMED = re.compile(r"file (?:file:)?(/\S+?\.(?:delta|snapshot|changelog|zip))\b")
_KINDS = (".delta", ".snapshot")


def refused_state(session: SparkSession, checkpoint: Path, error: BaseException) -> RunError | None:
    """The error in our words if it is about a file of state; None if it is about anything else."""
    text = str(error)
    if _NOT_LOADED not in text:
        return None
    named = _NAMED.search(text)
    path = Path(named.group(1)) if named else _unreadable(session, checkpoint / "state")
    return RunError(f"the state in {path} cannot be read", hint=RESTORE)


def _unreadable(session: SparkSession, folder: Path) -> Path:
    """The newest file of state that cannot be unpacked; the folder if all of them can be."""
    jvm = Jvm(session)
    codecs = jvm.java("org.apache.spark.io.CompressionCodec")
    codec = codecs.createCodec(jvm.context.sc().conf(), "lz4")
    files = [path for path in folder.rglob("*") if path.suffix in _KINDS]
    for path in sorted(files, key=lambda path: int(path.stem), reverse=True):
        if not _unpacks(jvm, codec, path):
            return path
    return folder


def _unpacks(jvm: Jvm, codec: Any, path: Path) -> bool:
    file = jvm.java("java.io.FileInputStream")(str(path))
    try:
        size = jvm.java("org.apache.commons.io.IOUtils").consume(codec.compressedInputStream(file))
        return int(size) > 0
    except Exception:  # whatever Java says: it is this file
        return False
    finally:
        file.close()
