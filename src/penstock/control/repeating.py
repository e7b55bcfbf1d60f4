"""What others compute already, computed once more: for a submission that counts from the start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.model.expressions import transform
from penstock.model.fragments import Fragment
from penstock.model.network import Deployment, Network
from penstock.model.operators import Filter, Input, Operator
from penstock.model.rewiring import copy_operator, read_under, rewire
from penstock.model.slices import FromSlices, Slices, given_slices, over_rows
from penstock.model.sources import RunningSource, Stream

if TYPE_CHECKING:
    from penstock.control.system import System


def repeat_results(
    system: System, deployment: Deployment, number: int
) -> tuple[Deployment, frozenset[str]]:
    """The deployment with all results of others that it reads computed anew, and which they are."""
    copying = _Copying(system, f"_again_{number}")
    network = deployment.network
    kept = [stream for stream in network.streams if not copying.is_result(stream)]
    names = {
        stream.name: copying.stream(stream.name) for stream in network.streams if stream not in kept
    }
    own = [read_under(operator, names) for operator in network.operators]
    queries = [
        replace(query, stream=names.get(query.stream, query.stream)) for query in network.queries
    ]
    streams = {stream.name: stream for stream in [*copying.streams.values(), *kept]}
    whole = Network(tuple(streams.values()), (*copying.operators, *own), tuple(queries))
    return replace(deployment, network=whole), frozenset(names)


class _Copying:
    """Copies of the operators behind running results, and the streams that those begin with."""

    def __init__(self, system: System, suffix: str) -> None:
        self._system = system
        self._suffix = suffix
        self.streams: dict[str, Stream] = {}
        self.operators: list[Operator] = []
        self._names: dict[str, str] = {}

    def is_result(self, stream: Stream) -> bool:
        """Whether a stream is the result of a running fragment."""
        maker = self._system.makers.get(stream.name)
        running = isinstance(stream.source, RunningSource)
        return running and maker is not None and maker.fragment is not None

    def stream(self, name: str) -> str:
        """The name of the copy of a running stream; of one that is brought in, its own."""
        if name in self._names:
            return self._names[name]
        maker = self._system.makers.get(name)
        if maker is None or maker.fragment is None:
            self._names[name] = name
            return name
        fragment = maker.fragment
        if fragment.gathers is not None:
            # Every part of a join has the operators of the whole.
            fragment = self._system.makers[maker.reads[0]].fragment or fragment
        self._copy_fragment(fragment)
        return self._names[name]

    def _copy_fragment(self, fragment: Fragment) -> None:
        slices = {read: found for read in fragment.inputs if (found := self._slices(read))}
        for read in fragment.inputs:
            if read in slices:
                self._copy_before(read, slices[read])
            elif self.stream(read) == read:
                self.streams[read] = self._system.streams[read]
        for operator in _over_rows(fragment, slices):
            self._copy(operator)

    def _slices(self, stream: str) -> Slices | None:
        """The slices that a stream is, if it is."""
        maker = self._system.makers.get(stream)
        fragment = None if maker is None else maker.fragment
        return None if fragment is None else given_slices(fragment.operators).get(stream)

    def _copy_before(self, stream: str, slices: Slices) -> None:
        """Copies what is in front of the windows that a stream has the slices of."""
        fragment = self._system.makers[stream].fragment
        assert fragment is not None
        names = [operator.name for operator in fragment.operators]
        before = fragment.operators[: names.index(slices.of.name)]
        self._copy_fragment(replace(fragment, operators=before))

    def _copy(self, operator: Operator) -> None:
        if not self._names.keys().isdisjoint(operator.outputs):
            return  # In front of slices, and of what its maker gives.
        copy = copy_operator(read_under(operator, self._names), f"{operator.name}{self._suffix}")
        self.operators.append(copy)
        self._names |= zip(operator.outputs, copy.outputs, strict=True)


def _over_rows(fragment: Fragment, slices: Mapping[str, Slices]) -> Iterator[Operator]:
    """The operators of a fragment, over rows where they read slices, which are not given again."""
    read = {name: given.of for name, given in slices.items()}
    for operator in fragment.operators:
        if isinstance(operator, Slices):
            continue
        of = read.get(operator.inputs[0].stream)
        if of is not None and isinstance(operator, Filter):
            check = transform(operator.predicate, over_rows(of))
            yield Filter(operator.name, of.input, check)
        elif isinstance(operator, FromSlices):
            name, shape = operator.input.stream, operator.whole.input.shape
            yield operator.whole if of else rewire(operator.whole, (Input(name, shape),))
        else:
            yield operator
