"""The folder in which a deployment keeps everything it must not forget."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from penstock.errors import InputError, RunError
from penstock.model.fragments import Fragment
from penstock.model.network import Network
from penstock.model.sources import GeneratorSource, Stream
from penstock.spark.channels.channel import Channel
from penstock.spark.channels.durable import (
    read_number,
    read_text,
    write_number,
    write_text,
)
from penstock.spark.dead_letters import DeadLetters
from penstock.spark.fragment_run import FragmentFolder


@dataclass(frozen=True)
class StateFolder:
    """Checkpoints, channels, dead letters and logs of one deployment, under one path."""

    path: Path

    def channel(self, stream: str) -> Channel:
        """The channel that carries ``stream``."""
        return Channel.open(self.path / "channels" / stream)

    def fragment(self, name: str) -> FragmentFolder:
        return FragmentFolder(self.path / "fragments" / name)

    def stream(self, name: str) -> Path:
        return self.path / "streams" / name

    def rehearsals(self, node: str) -> Path:
        """Where a node tries out what is to come."""
        return self.path / "rehearsals" / node

    def dead_letters(self, stream: str) -> DeadLetters:
        return DeadLetters(self.path / "dead_letters" / stream)

    @property
    def log(self) -> Path:
        return self.path / "log" / "spark.log"

    def prepare(self) -> None:
        """Makes the folder, or says why it cannot be made."""
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the state folder {self.path} cannot be made: {error.strerror}",
                hint="Choose another with --state.",
            ) from None

    def clear(self) -> None:
        """Forgets everything; the folder stays."""
        for part in ("channels", "fragments", "streams", "dead_letters", "rehearsals", "epoch"):
            target = self.path / part
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def next_epoch(self) -> int:
        """A number higher than any given out before."""
        epoch = (read_number(self.path / "epoch") or 0) + 1
        write_number(self.path / "epoch", epoch)
        return epoch

    def check_plan(self, network: Network, fragment: Fragment) -> None:
        """Raises if the state was written by a fragment that did something else."""
        path = self.fragment(fragment.name).path / "plan"
        plan = fingerprint(network, fragment)
        known = read_text(path)
        if known is not None and known != plan:
            raise InputError(
                f"{fragment.name} has changed since its state in {self.path} was written",
                hint="Run with --fresh to start over, or give the changed query a new name.",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, plan)


def fingerprint(network: Network, fragment: Fragment) -> str:
    """A short text that differs whenever the fragment or what it reads differs."""
    sources = [_in_one_order(one) for one in network.streams if one.name in fragment.inputs]
    groups = network.groups(fragment.output)
    kept = () if groups is None else (groups,)
    described = repr((fragment.inputs, fragment.operators, fragment.output, sources, *kept))
    return hashlib.sha256(described.encode()).hexdigest()[:32]


def _in_one_order(stream: Stream) -> Stream:
    """The stream with a generator's options sorted: they mean the same in any order."""
    if not isinstance(stream.source, GeneratorSource):
        return stream
    options = dict(sorted(stream.source.options.items()))
    return replace(stream, source=replace(stream.source, options=options))


class StateLock:
    """Held by the one process that runs a deployment; ends with the process."""

    def __init__(self, state: StateFolder) -> None:
        self._file: IO[str] = (state.path / "lock").open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            owner = self._file.read().strip() or "unknown"
            self._file.close()
            raise RunError(
                f"the state in {state.path} is in use by process {owner}",
                hint="Stop that process first, or choose another folder with --state.",
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Lets another process have the folder."""
        self._file.close()
