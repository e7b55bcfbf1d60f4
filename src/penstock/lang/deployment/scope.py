"""The names of a deployment file while it is read, and what stands behind them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import InputError, PenstockError
from penstock.lang.deployment.drafts import Draft, QueryDraft
from penstock.lang.sql import KnownNames
from penstock.model.network import Network, Query
from penstock.model.operators import Operator
from penstock.model.schema import Shape
from penstock.model.sources import Stream, Table


class Scope:
    """Collects streams, tables and queries; no two of them may have one name."""

    def __init__(self) -> None:
        self._claims: dict[str, str] = {}
        self._streams: list[Stream] = []
        self._tables: dict[str, Table] = {}
        self._shapes: dict[str, Shape] = {}
        self._operators: dict[str, tuple[Operator, ...]] = {}
        self._queries: dict[str, Query] = {}

    @property
    def known(self) -> list[str]:
        """The names of all streams from outside and all tables."""
        return [*(stream.name for stream in self._streams), *self._tables]

    def claim(self, name: str, what: str) -> None:
        """Takes ``name`` for ``what``; raises if something else has it."""
        other = self._claims.setdefault(name.lower(), what)
        if other != what:
            raise InputError(f"{what} is called like {other}", hint="Rename one of them.")

    def claim_outputs(self, draft: Draft) -> None:
        """Takes the names of the streams a draft gives beside its own."""
        for output in draft.outputs:
            self._claim_inner(draft, output)

    def add_stream(self, stream: Stream) -> None:
        """Adds a stream from outside."""
        self._streams.append(stream)
        self._shapes[stream.name] = stream.shape

    def add_table(self, table: Table) -> None:
        """Adds a table."""
        self._tables[table.name] = table

    def add_draft(self, draft: Draft) -> None:
        """Checks a draft against all added before, which include what it reads, and adds it."""
        try:
            made = draft.operators(KnownNames(self._shapes, self._tables))
        except PenstockError as error:
            raise error.at(draft.place) from None
        outputs = {name: shape for operator in made for name, shape in operator.outputs.items()}
        for name in outputs:
            self._claim_inner(draft, name)
        self._shapes.update({name: outputs[name] for name in draft.outputs})
        self._operators[draft.name] = made
        if isinstance(draft, QueryDraft):
            result = next(operator for operator in made if operator.name == draft.name)
            self._queries[draft.name] = draft.query(result)

    def network(self, order: Sequence[str]) -> Network:
        """The network of everything added; ``order`` is that of the drafts in the file."""
        return Network(
            tuple(self._streams),
            tuple(operator for name in order for operator in self._operators[name]),
            tuple(self._queries[name] for name in order if name in self._queries),
        )

    def _claim_inner(self, draft: Draft, name: str) -> None:
        if name == draft.name:
            return
        other = self._claims.setdefault(name.lower(), draft.what)
        if other != draft.what:
            raise InputError(
                f"{draft.what} makes a stream {name} of its own, and {other} is called so",
                hint="Rename one of them.",
                place=draft.place,
            )
