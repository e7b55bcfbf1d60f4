"""The server's part of a query at another cut, as a submission of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.device.chain import Chain, chain_of
from penstock.device.splitting import copy_of_source
from penstock.errors import InputError
from penstock.model.beginnings import Since, since_behind
from penstock.model.network import Deployment, Network, Query
from penstock.model.operators import Aggregate, Input, Operator
from penstock.model.rewiring import copy_operator, rewire
from penstock.model.sources import ConsoleSink, Stream
from penstock.model.windows import SessionWindow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Segment:
    """A query of a deployment up to a cut."""

    of: str
    query: str
    cut: int

    def to_text(self) -> str:
        """The segment as the text of a submission."""
        return json.dumps(vars(self))

    @classmethod
    def from_text(cls, text: str) -> Segment:
        """The segment that :meth:`to_text` gave."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            raise InputError(f"{text!r} is no segment of a query") from None

    def stream(self, chain: Chain, number: int) -> str:
        """The channel of the segment, as the submission of this number."""
        return f"{chain.stream_at(self.cut)}_cut{number}"


def segment_deployment(
    name: str, text: str, number: int, known: Iterable[Deployment], streams: Mapping[str, Stream]
) -> Deployment:
    """The deployment of a segment over running streams: copies of all operators up to its cut."""
    segment = Segment.from_text(text)
    whole = next((running.whole for running in known if running.name == segment.of), None)
    if whole is None:
        raise InputError(f"no deployment {segment.of} with devices is running")
    chain, suffix = chain_of(whole, segment.query), f"_cut{number}"
    behind = whole.upstream([chain.stream_at(segment.cut)])
    operators = [
        operator for operator in whole.operators if not behind.isdisjoint(operator.outputs)
    ]
    names = {output: f"{output}{suffix}" for operator in operators for output in operator.outputs}
    copies: list[Operator] = [_copy(operator, names, suffix) for operator in operators]
    result = segment.stream(chain, number)
    if segment.cut == 0:
        copies.append(copy_operator(copy_of_source(chain), result))
    outside = tuple(streams[stream.name] for stream in whole.streams if stream.name in behind)
    query = Query(f"{segment.query}{suffix}", result, ConsoleSink())
    return Deployment(name, Network(outside, tuple(copies), (query,)))


def _copy(operator: Operator, names: Mapping[str, str], suffix: str) -> Operator:
    inputs = tuple(
        Input(names.get(read.stream, read.stream), read.shape) for read in operator.inputs
    )
    return copy_operator(rewire(operator, inputs), f"{operator.name}{suffix}")


def can_switch(chain: Chain, old: int, new: int) -> bool:
    """Whether a moment of event time can divide what comes by one cut from what by the other."""
    between = chain.operators[min(old, new) : max(old, new)]
    return (
        chain.shape_at(old).event_time is not None
        and chain.shape_at(new).event_time is not None
        and not any(operator.delay_us for operator in between)
        and not any(
            isinstance(operator, Aggregate) and isinstance(operator.window, SessionWindow)
            for operator in between
        )
    )


def boundary_us(chain: Chain, old: int, new: int, since: str) -> int | None:
    """The moment up to which rows come by the old cut; None where none can be told.

    Results of the new cut are whole after ``since``. Where it lies before the old one, windows that
    devices then make are whole a little later.
    """
    since_us = (datetime.fromisoformat(since) - _EPOCH) // timedelta(microseconds=1)
    event_time = chain.shape_at(new).event_time
    if event_time is None:
        return None
    known = Since.after({event_time: since_us})
    for operator in chain.operators[new:old]:
        known = since_behind(operator, [known])
    last = chain.shape_at(max(old, new)).event_time
    return known.whole.get(last or "")
