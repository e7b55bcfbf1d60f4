"""Since when a submission counts: decided from how far the streams behind it have come.

The rules are those of :mod:`penstock.model.beginnings`; here is where they begin: at what channels
hold and how far the time of their streams has come, given as :class:`Head`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.channels.channel import Channel
from penstock.channels.ingest.again import reread_of
from penstock.channels.manifest import Manifest
from penstock.control.system import System, Unit
from penstock.errors import InputError, listed
from penstock.model.beginnings import (
    FIRST,
    WHOLE,
    Beginning,
    Begun,
    InputStart,
    Moments,
    Reread,
    Since,
    StartKind,
    streams_since,
)


@dataclass(frozen=True)
class Head:
    """How far a channel has come at some batch: the number of the next one, and its times."""

    next: int = 0
    latest: Moments = field(default_factory=dict)
    ended: bool = False
    manifest: Manifest | None = None

    @classmethod
    def behind(cls, manifest: Manifest | None) -> Head:
        """The head behind a batch; that of an empty channel for None."""
        if manifest is None:
            return cls()
        return cls(manifest.sequence + 1, manifest.latest, manifest.ended, manifest)


def newest(channel: Channel) -> Head:
    """How far a channel has come."""
    return Head.behind(channel.last())


def oldest(channel: Channel) -> Head:
    """What a channel has let go of at most: all before and in the oldest batch that it keeps."""
    first = channel.oldest()
    return Head() if first == 0 else Head.behind(channel.manifest(first))


def decide_beginnings(
    system: System, submission: int, start: StartKind, look: Callable[[str], Head]
) -> Begun:
    """The beginning of every fragment of a submission that reads what was there before it.

    ``look`` tells the head of a stream's channel: the newest, or the oldest for ``oldest``.
    """
    heads = {name: look(name) for name in _looked_at(system, submission)}
    units = [unit for unit in system.units.values() if unit.submission == submission]
    made = _Late(system, submission, heads)
    if start == "start":
        again = {made.again_name(name): made.again(name) for name in heads if heads[name].next}
        fragments = {unit.name: made.from_start(unit) for unit in units if _counts(unit)}
    else:
        made.check_times(units)
        again = {}
        decide = made.from_oldest if start == "oldest" else made.from_now
        fragments = {unit.name: decide(unit) for unit in units if _counts(unit)}
    late = {name: beginning for name, beginning in fragments.items() if beginning != FIRST}
    return Begun(start, late, again)


def _counts(unit: Unit) -> bool:
    """Whether a unit may have to leave out rows; the parts of a join have done so for all of it."""
    return unit.fragment is not None and unit.fragment.gathers is None


def _looked_at(system: System, submission: int) -> Iterable[str]:
    """The streams of others behind a submission, none before those that are made of it.

    In this order: what a result is made of has come further than the result.
    """
    waiting = [unit for unit in system.units.values() if unit.submission == submission]
    found: set[str] = set()
    while waiting:
        for stream in waiting.pop().reads:
            maker = system.makers[stream]
            if stream not in found:
                found.add(stream)
                waiting.append(maker)
    order = [stream for stream, maker in system.makers.items() if maker.submission != submission]
    return [stream for stream in reversed(order) if stream in found]


def times_unknown(stream: str, read: Iterable[str]) -> InputError:
    """The error for a stream with an event time of its own that comes later than what it reads."""
    return InputError(
        f"{stream} has an event time of its own, and how far that has come in {listed(read)} is "
        "not known",
        hint="Submit it with --from start.",
    )


class _Late:
    """What a submission sees of the streams of others that are there already."""

    def __init__(self, system: System, submission: int, heads: Mapping[str, Head]) -> None:
        self._makers = system.makers
        self._submission = submission
        self._heads = heads

    def _is_ours(self, stream: str) -> bool:
        return self._makers[stream].submission == self._submission

    def check_times(self, units: Iterable[Unit]) -> None:
        """Raises where a late one gives rows another event time: how far that has come is unknown.

        The first rows it would see could be late, and windows lack rows that came before.
        """
        for unit in units:
            late = [
                stream
                for stream in unit.reads
                if not self._is_ours(stream) and self._heads[stream].next
            ]
            if unit.is_retimed and late:
                raise times_unknown(unit.name, late)

    def _roots(self, stream: str) -> set[str]:
        """Where the rows of a stream come from: intakes, or streams with times of their own."""
        maker = self._makers[stream]
        if maker.fragment is None or maker.is_retimed:
            return {stream}
        return {root for upstream in maker.reads for root in self._roots(upstream)}

    def again_name(self, stream: str) -> str:
        """The channel in which rows of a stream are made again; no stream has a dot in its name."""
        return f"{stream}.{self._submission}"

    def again(self, stream: str) -> Reread:
        """What is to be made again of a stream that is there already."""
        manifest = self._heads[stream].manifest
        assert manifest is not None
        return reread_of(stream, manifest)

    def from_start(self, unit: Unit) -> Beginning:
        """From the first row on: what is gone from channels is made again."""
        late = [
            stream
            for stream in unit.reads
            if not self._is_ours(stream) and self._heads[stream].next
        ]
        inputs = {
            stream: InputStart(self._heads[stream].next, before=self.again_name(stream))
            for stream in late
        }
        return Beginning("start", None, inputs) if inputs else FIRST

    def from_now(self, unit: Unit) -> Beginning:
        """Later than every row there is by now, of all streams behind the fragment."""
        roots = {root for stream in unit.reads for root in self._roots(stream)}
        late = {root for root in roots if not self._is_ours(root) and self._heads[root].next}
        self._check_going_on(unit)
        moments = [us for root in late for us in self._time(root).values()]
        begin_us = max(moments, default=None)
        known = {root: self._moved(root, begin_us) for root in late}
        sinces = {stream: self._since(stream, known) for stream in unit.reads}
        return self._beginning(unit, "now", sinces, late, begin_us)

    def _time(self, stream: str) -> Moments:
        """How far the event time of a stream of others has come."""
        shape = self._makers[stream].shape(stream)
        latest = self._heads[stream].latest
        return {name: us for name, us in latest.items() if name == shape.event_time}

    def _moved(self, root: str, begin_us: int | None) -> Since:
        latest = self._heads[root].latest
        moved = {n: us if begin_us is None else max(us, begin_us) for n, us in latest.items()}
        return self._after(root, moved)

    def _after(self, stream: str, moments: Moments) -> Since:
        """All rows of a stream after these times, told by its event time."""
        event_time = self._makers[stream].shape(stream).event_time
        return Since({name: us for name, us in moments.items() if name == event_time}, moments)

    def _since(self, stream: str, known: Mapping[str, Since]) -> Since:
        """After which times a stream counts if those ``known`` count after theirs."""
        if stream in known:
            return known[stream]
        maker = self._makers[stream]
        if maker.fragment is None:
            return WHOLE
        inputs = {upstream: self._since(upstream, known) for upstream in maker.reads}
        return streams_since(maker.fragment.operators, inputs).get(maker.stream_in(stream), WHOLE)

    def from_oldest(self, unit: Unit) -> Beginning:
        """Later than every row that channels do not hold any more."""
        others = [stream for stream in unit.reads if not self._is_ours(stream)]
        late = {stream for stream in others if self._heads[stream].next}
        sinces = {stream: self._kept_since(stream) for stream in unit.reads}
        moments = [us for stream in others for us in self._event_time(stream, sinces[stream])]
        return self._beginning(unit, "oldest", sinces, late, max(moments, default=None))

    def _kept_since(self, stream: str) -> Since:
        if self._is_ours(stream):
            maker = self._makers[stream]
            inputs = {upstream: self._kept_since(upstream) for upstream in maker.reads}
            operators = maker.fragment.operators if maker.fragment else ()
            return streams_since(operators, inputs).get(maker.stream_in(stream), WHOLE)
        own, gone = self._own_since(stream), self._heads[stream].latest
        # What is gone has been given, so it lies after what the stream itself counts after.
        return self._after(stream, {**own.whole, **gone}) if gone else own

    def _own_since(self, stream: str) -> Since:
        """After which times a stream of others counts itself."""
        maker = self._makers[stream]
        fragment = maker.fragment
        if fragment is None:
            return WHOLE
        inputs = {
            name: input_start.since for name, input_start in fragment.beginning.inputs.items()
        }
        if fragment.gathers is not None:
            return self._own_since(next(iter(self._makers[stream].reads)))
        return streams_since(fragment.operators, inputs).get(maker.stream_in(stream), WHOLE)

    def _event_time(self, stream: str, since: Since) -> list[int]:
        column = self._makers[stream].shape(stream).event_time
        return [us for name, us in since.whole.items() if name == column]

    def _beginning(
        self,
        unit: Unit,
        start: StartKind,
        sinces: Mapping[str, Since],
        late: set[str],
        begin_us: int | None,
    ) -> Beginning:
        if not late and begin_us is None:
            return FIRST
        untimed = {stream for stream in late if not self._time(stream)}
        inputs = {
            stream: InputStart(self._first(stream, start, stream in untimed), since)
            for stream, since in sinces.items()
        }
        return Beginning(start, begin_us, inputs, is_untimed=bool(untimed))

    def _first(self, stream: str, start: StartKind, is_untimed: bool) -> int:
        if self._is_ours(stream):
            return 0
        # The oldest batch only tells which times rows before it have had, where there are any.
        return self._heads[stream].next - int(start == "oldest" and is_untimed)

    def _check_going_on(self, unit: Unit) -> None:
        """Raises if nothing that the fragment reads will ever have another row."""
        read = [stream for stream in unit.reads if not self._is_ours(stream)]
        if (
            read
            and len(read) == len(unit.reads)
            and all(self._heads[stream].ended for stream in read)
        ):
            raise InputError(
                f"{listed(read)} {'has' if len(read) == 1 else 'have'} ended: "
                f"{unit.name} would see no rows if it began now",
                hint="Submit it with --from start, or with --from oldest for what is kept.",
            )
