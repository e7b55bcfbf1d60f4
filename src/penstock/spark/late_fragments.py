"""Fragments of a deployment that come later than their streams: since when they count.

What is decided is kept beside the fragment's checkpoints, and holds for every later run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from penstock.channels.durable import RESTORE, read_record, write_record
from penstock.channels.ingest.again import check_rereadable, reread_of
from penstock.channels.manifest import Manifest
from penstock.errors import InputError, RunError
from penstock.model.beginnings import (
    FIRST,
    WHOLE,
    Beginning,
    InputStart,
    Reread,
    Since,
    streams_since,
)
from penstock.model.fragments import Fragment
from penstock.model.ids import channel_for
from penstock.model.network import Network
from penstock.model.retime import Retime
from penstock.spark.state import StateFolder

_NAME = "beginning"


@dataclass(frozen=True)
class LateFragments:
    """Fragments with their beginnings, and the rows to be made ``again`` for them by channel.

    ``reasons`` say, by fragment, why what a new one reads is not read again from the start.
    """

    fragments: tuple[Fragment, ...]
    again: Mapping[str, Reread] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


def begun(
    state: StateFolder, network: Network, fragments: Sequence[Fragment], run: int
) -> LateFragments:
    """The fragments with their beginnings: those kept, and those decided now for new ones.

    ``run`` numbers the runs; rows made again are in channels called after it. Nothing else may be
    bringing in or reading streams meanwhile.
    """
    deciding = _Deciding(state, network, run)
    made = tuple(deciding.with_beginning(fragment) for fragment in fragments)
    return LateFragments(made, deciding.again, deciding.reasons)


class _Deciding:
    def __init__(self, state: StateFolder, network: Network, run: int) -> None:
        self._state = state
        self._network = network
        self._run = run
        self._sinces: dict[str, Since] = {}
        self.again: dict[str, Reread] = {}
        self.reasons: dict[str, str] = {}

    def with_beginning(self, fragment: Fragment) -> Fragment:
        """The fragment with its beginning, which is kept from now on."""
        beginning = self._kept(fragment)
        if beginning is None:
            beginning = self._decided(fragment)
            self._keep(fragment, beginning)
        sinces = {name: input_start.since for name, input_start in beginning.inputs.items()}
        output = streams_since(fragment.operators, sinces).get(fragment.output, WHOLE)
        self._sinces[fragment.output] = output
        return replace(fragment, beginning=beginning)

    def _kept(self, fragment: Fragment) -> Beginning | None:
        folder = self._state.fragment(fragment.id)
        record = read_record(folder.path / _NAME)
        if record is None:
            if folder.has_begun:
                raise RunError(f"the file {folder.path / _NAME} is missing", hint=RESTORE)
            return None
        self.again |= {name: Reread.from_record(reread) for name, reread in record["again"].items()}
        return Beginning.from_record(record["beginning"])

    def _keep(self, fragment: Fragment, beginning: Beginning) -> None:
        mine = {begin.before for begin in beginning.inputs.values()}
        again = {name: asdict(reread) for name, reread in self.again.items() if name in mine}
        folder = self._state.fragment(fragment.id).path
        folder.mkdir(parents=True, exist_ok=True)
        write_record(folder / _NAME, {"beginning": beginning.to_record(), "again": again})

    def _decided(self, fragment: Fragment) -> Beginning:
        heads = self._late(fragment)
        sinces = {name: one for name in fragment.inputs if (one := self._since(name)) != WHOLE}
        if not heads and not sinces:
            return FIRST
        try:
            if sinces:
                raise InputError("what it reads does not count from the start either")
            return self._from_start(heads)
        except InputError as error:
            if isinstance(fragment.operators[-1], Retime):
                raise InputError(
                    f"{fragment.name} has an event time of its own and cannot begin later than "
                    f"what it reads: {error.what}",
                    hint="Run with --fresh to start over.",
                ) from None
            self.reasons[fragment.name] = error.what
            return self._from_now(fragment, heads)

    def _since(self, stream: str) -> Since:
        return self._sinces.get(stream, WHOLE)

    def _late(self, fragment: Fragment) -> dict[str, Manifest]:
        """The streams from outside that it reads and that were brought in without it."""
        outside = {stream.name for stream in self._network.streams}
        found = {}
        for name in outside.intersection(fragment.inputs):
            channel = self._state.channel(channel_for(name))
            last = channel.last()
            if last is not None and not channel.has_reader(fragment.reader):
                found[name] = last
        return found

    def _from_start(self, heads: Mapping[str, Manifest]) -> Beginning:
        inputs, again = {}, {}
        for name, last in heads.items():
            known = reread_of(name, last)
            check_rereadable(self._network.stream(name), self._state.stream(name), known)
            before = f"{name}.{self._run}"
            inputs[name] = InputStart(last.sequence + 1, before=before)
            again[before] = known
        self.again |= again
        return Beginning("start", None, inputs)

    def _from_now(self, fragment: Fragment, heads: Mapping[str, Manifest]) -> Beginning:
        """After the latest event time of all that it reads."""
        moments = [us for last in heads.values() for us in last.latest.values()]
        moments += [us for name in fragment.inputs for us in self._since(name).whole.values()]
        begin_us = max(moments, default=None)
        inputs = {name: InputStart(since=self._since(name)) for name in fragment.inputs}
        for name, last in heads.items():
            column = self._network.shapes[name].event_time
            timed = column is not None and begin_us is not None and column in last.latest
            since = Since.after({column: begin_us}) if timed else WHOLE  # type: ignore[dict-item]
            inputs[name] = InputStart(last.sequence + 1, since)
        untimed = any(not last.latest for last in heads.values())
        return Beginning("now", begin_us, inputs, is_untimed=untimed)
