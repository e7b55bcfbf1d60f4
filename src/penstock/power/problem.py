"""Queries as chains, the devices that hear their results, and the broadcast between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from penstock.errors import InputError, listed, suggestion
from penstock.model.devices import Broadcast, DeviceProfile, check_at_least_zero

STREAM_JOIN, SERVER_ONLY, DEVICE_TABLE = "join", "server", "own-table"
SHIPPED_KINDS = ("select", "project", "aggregate", "join-table")
CHAIN_KINDS = (*SHIPPED_KINDS, STREAM_JOIN, SERVER_ONLY, DEVICE_TABLE)


@dataclass(frozen=True)
class ChainSource:
    """Where a chain begins: tuples per second, and the bytes of each."""

    name: str
    rate_per_s: float
    tuple_bytes: float

    def __post_init__(self) -> None:
        check_at_least_zero(f"source {self.name}", "rate", self.rate_per_s)
        check_at_least_zero(f"source {self.name}", "tuple_bytes", self.tuple_bytes)


@dataclass(frozen=True)
class ChainOperator:
    """An operator of a chain: cycles per input tuple, output over input tuples, the same of sizes.

    A ``kind`` of ``join`` is a join with another stream: only the server has both. One of
    ``server`` is something else that only the server can run, one of ``own-table`` a join with a
    table that only the device has; ``why`` it is so.
    """

    cycles: float
    selectivity: float = 1.0
    projectivity: float = 1.0
    kind: str = ""
    name: str = ""
    why: str = ""

    @property
    def stays_on_server(self) -> bool:
        return self.kind in (STREAM_JOIN, SERVER_ONLY)

    @property
    def is_shipped(self) -> bool:
        """Whether only a device can run it."""
        return self.kind == DEVICE_TABLE

    @property
    def label(self) -> str:
        """What tables call it, as far as it has been told."""
        return self.name or self.kind


def operator_label(at: int, operator: ChainOperator, query: str) -> str:
    """An operator as errors call it, counted from 1.

    >>> operator_label(0, ChainOperator(1.0, name="profit"), "q1")
    'operator 1 (profit) of query q1'
    """
    return f"operator {at + 1}{f' ({operator.label})' if operator.label else ''} of query {query}"


@dataclass(frozen=True)
class ChainQuery:
    """A chain of operators from its source to its root, and the devices that want its result.

    ``cut`` settles how many operators stay on the server; None leaves that to the planner.
    """

    name: str
    source: str
    devices: tuple[str, ...]
    operators: tuple[ChainOperator, ...]
    cut: int | None = None

    def __post_init__(self) -> None:
        if not self.devices:
            raise InputError(f"query {self.name} has no devices", hint="Name who hears its result.")
        if len(set(self.devices)) != len(self.devices):
            twice = next(name for name in self.devices if self.devices.count(name) > 1)
            raise InputError(f"query {self.name} names device {twice} twice", hint="Remove one.")
        for at, operator in enumerate(self.operators):
            check_operator(self.operator_label(at), operator)
        if self.cut is not None:
            self._check_cut(self.cut)

    def operator_label(self, at: int) -> str:
        """The operator at this position as errors call it."""
        return operator_label(at, self.operators[at], self.name)

    def _check_cut(self, cut: int) -> None:
        if not 0 <= cut <= len(self.operators):
            raise InputError(
                f"query {self.name} has the cut {cut} and {len(self.operators)} operators",
                hint="A cut is the number of operators that stay on the server.",
            )
        if cut < self.least_cut:
            raise self._uncut(cut)
        if cut > self.most_cut:
            raise InputError(
                f"query {self.name} has the cut {cut}, which leaves "
                f"{self.operator_label(self.most_cut)} on the server: its table is on the device",
                hint=f"Give a cut of at most {self.most_cut}, or give the table a file.",
            )

    def _uncut(self, cut: int) -> InputError:
        last = self.operators[self.least_cut - 1]
        shipped = (
            f"query {self.name} has the cut {cut}, which ships "
            f"{self.operator_label(self.least_cut - 1)} to a device"
        )
        if last.kind == SERVER_ONLY:
            return InputError(
                f"{shipped}, which cannot run it{f': {last.why}' if last.why else ''}",
                hint=f"Give a cut of at least {self.least_cut}, or write it in another way.",
            )
        return InputError(
            f"{shipped}: it joins another stream, which only the server has",
            hint=f"Give a cut of at least {self.least_cut}, or join a table instead.",
        )

    @property
    def least_cut(self) -> int:
        """The first cut that leaves every join of streams on the server."""
        joins = [at for at, operator in enumerate(self.operators) if operator.stays_on_server]
        return joins[-1] + 1 if joins else 0

    @property
    def most_cut(self) -> int:
        """The last cut that ships every join with a table of the device."""
        shipped = (at for at, operator in enumerate(self.operators) if operator.is_shipped)
        return next(shipped, len(self.operators))


@dataclass(frozen=True)
class PowerProblem:
    """Which cut is best for every query? All that is known to answer it."""

    broadcast: Broadcast
    sources: tuple[ChainSource, ...]
    devices: tuple[DeviceProfile, ...]
    queries: tuple[ChainQuery, ...]

    def __post_init__(self) -> None:
        if not self.queries:
            raise InputError("no queries", hint="Give at least one under queries:.")
        for query in self.queries:
            self.check_query(query)

    @cached_property
    def source_by_name(self) -> dict[str, ChainSource]:
        return {source.name: source for source in self.sources}

    @cached_property
    def device_by_name(self) -> dict[str, DeviceProfile]:
        return {device.name: device for device in self.devices}

    def listeners(self, query: ChainQuery) -> list[DeviceProfile]:
        """The profiles of all who hear the result of ``query``."""
        return [self.device_by_name[name] for name in query.devices]

    def cuts_of(self, query: ChainQuery) -> range:
        """The cuts that are allowed, from the source to the root; raises where there is none."""
        if query.cut is not None:
            least, most = query.cut, query.cut
        else:
            least, most = query.least_cut, query.most_cut
        if least > most:
            raise InputError(
                f"query {query.name} cannot be cut: {query.operator_label(most)} joins a table of "
                f"the device, and {query.operator_label(least - 1)} behind it needs the server",
                hint="Join the table last, or give it a file that the server can read.",
            )
        if not self.broadcast.raw_cut:
            least = max(1, least)
        if least > most:
            raise InputError(
                f"query {query.name} can only be cut at its source, and raw_cut is false",
                hint="Give it an operator that stays on the server, or set raw_cut: true.",
            )
        return range(least, most + 1)

    def check_query(self, query: ChainQuery) -> None:
        """Raises where a query names what is not there, or cannot be cut."""
        for kind, names, known in (
            ("source", (query.source,), self.source_by_name),
            ("device", query.devices, self.device_by_name),
        ):
            for name in names:
                if name not in known:
                    raise InputError(
                        f"query {query.name} names the {kind} {name}; there are {listed(known)}",
                        hint=suggestion(name, known),
                    )
        self.cuts_of(query)


def check_operator(what: str, operator: ChainOperator) -> None:
    """Raises where the numbers or the kind of an operator make no sense."""
    for key in ("cycles", "selectivity", "projectivity"):
        check_at_least_zero(what, key, getattr(operator, key))
    if operator.kind and operator.kind not in CHAIN_KINDS:
        raise InputError(
            f"{what} is of kind {operator.kind}; the kinds are {listed(CHAIN_KINDS)}",
            hint=suggestion(operator.kind, CHAIN_KINDS),
        )
