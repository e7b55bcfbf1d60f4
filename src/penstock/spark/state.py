"""The folder in which a deployment keeps everything it must not forget."""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from penstock.channels.channel import Channel
from penstock.channels.dead_letters import DeadLetters, has_ended_unread
from penstock.channels.durable import (
    read_number,
    read_text,
    write_number,
    write_text,
)
from penstock.channels.layout import StateLayout
from penstock.errors import InputError, RunError
from penstock.feeds.set_aside import set_aside_text
from penstock.model.canonical import plan_signature
from penstock.model.canonical_stream import VERSION
from penstock.model.fragments import Fragment
from penstock.model.ids import ChannelId, NodeId, PartId, channel_for
from penstock.model.network import Network
from penstock.spark.fragment_folder import FragmentFolder


@dataclass(frozen=True)
class StateFolder:
    """Checkpoints, channels, dead letters and logs of one deployment, under one path."""

    path: Path

    @property
    def layout(self) -> StateLayout:
        """Where everything lies in it."""
        return StateLayout(self.path)

    def channel(self, channel: ChannelId) -> Channel:
        return Channel.open(self.layout.channel(channel))

    def fragment(self, part: PartId) -> FragmentFolder:
        return FragmentFolder(self.layout.fragment(part))

    @property
    def bundles(self) -> Path:
        """Where the logs of light fragments lie, one for each process that runs any."""
        folder = self.layout.bundles
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def stream(self, name: str) -> Path:
        return self.layout.stream(name)

    def rehearsals(self, node: NodeId) -> Path:
        """Where a node tries out what is to come."""
        return self.layout.rehearsals(node)

    def dead_letters(self, stream: str) -> DeadLetters:
        return DeadLetters(self.layout.letters(stream))

    def unread_inputs(self, network: Network) -> dict[str, str]:
        """The inputs that have ended and of which nothing could be read: what became of it.

        An input that was empty is not among them.
        """
        found = {}
        for name in network.judged:
            kinds = self.dead_letters(name).counts()
            if any(kinds.values()) and has_ended_unread(self.channel(channel_for(name))):
                reasons = self.dead_letters(name).reasons()
                found[name] = set_aside_text(kinds, reasons)
        return found

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
        for target in self.layout.parts:
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def next_epoch(self) -> int:
        """A number higher than any given out before."""
        epoch = (read_number(self.layout.epoch) or 0) + 1
        write_number(self.layout.epoch, epoch)
        return epoch

    def check_plan(self, network: Network, fragment: Fragment) -> None:
        """Raises if the state was written by a fragment that did something else."""
        path = self.fragment(fragment.id).path / "plan"
        plan = plan_signature(network, fragment)
        known = read_text(path)
        if known is not None and known != plan:
            raise self._another_plan(fragment, known)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, plan)

    def _another_plan(self, fragment: Fragment, known: str) -> InputError:
        if known.partition(":")[0] == str(VERSION):
            return InputError(
                f"{fragment.name} has changed since its state in {self.path} was written",
                hint="Run with --fresh to start over, or give the changed query a new name.",
            )
        return InputError(
            f"the state of {fragment.name} in {self.path} was written by another version of "
            "Penstock, and whether it is of the same query cannot be told",
            hint="Finish it with that version, or run with --fresh to start over.",
        )


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
