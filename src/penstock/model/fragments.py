"""Fragments: operators that run as one Structured Streaming query and move together."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.operators import Operator
from penstock.model.schema import checked_name


@dataclass(frozen=True)
class Fragment:
    """Connected operators with one output, run as one streaming query with one checkpoint.

    ``inputs`` are the streams read from outside or from other fragments' channels; ``output`` is
    the stream it gives; ``queries`` the queries whose result that stream is.
    """

    name: str
    inputs: tuple[str, ...]
    operators: tuple[Operator, ...]
    output: str
    queries: tuple[str, ...] = ()
    is_read: bool = False

    def __post_init__(self) -> None:
        checked_name(self.name, "fragment")

    @property
    def stateful(self) -> bool:
        return any(operator.stateful for operator in self.operators)
