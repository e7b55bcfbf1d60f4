"""A query on the air: which plan it is broadcast by, and what is told to who tunes in."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.device.chain import Chain
from penstock.device.splitting import raw_name
from penstock.device.steps import DeviceStep
from penstock.feeds.table_rows import table_rows
from penstock.model.operators import TableJoin
from penstock.model.schema import Schema, Shape
from penstock.power.air.cycle import payload_of, rows_of


@dataclass(frozen=True)
class OnAir:
    """How a query is broadcast now: what a disseminator has to remember of it.

    ``stream`` is the channel that is followed, of the submission ``submission`` if it is one of its
    own. With ``until_us`` the plan ends at that moment, and ``then`` is the next one, whose windows
    count after it. ``listeners`` is how many there were last.
    """

    number: int
    cut: int
    stream: str
    plan: int = 1
    has_begun: bool = False
    after_us: int | None = None
    until_us: int | None = None
    submission: str = ""
    then: Mapping[str, Any] | None = None
    listeners: int = 0

    @classmethod
    def first(cls, number: int, chain: Chain, cut: int) -> OnAir:
        """The first plan of a query."""
        stream = chain.stream_at(cut) if cut else raw_name(chain.query)
        return cls(number, cut, stream)

    def to_record(self) -> dict[str, Any]:
        """The plan as plain values."""
        return asdict(self)

    def following(self) -> OnAir:
        """The plan after this one."""
        assert self.then is not None
        return replace(self, **self.then, plan=self.plan + 1, after_us=self.until_us,
                       until_us=None, then=None)  # fmt: skip


@dataclass(frozen=True)
class ShippedPlan:
    """What a device has to know of a plan: the rows that come, and what to do with them."""

    plan: int
    cut: int
    schema: Schema
    event_time: str | None
    steps: tuple[DeviceStep, ...]
    tables: Mapping[str, pa.Table]
    after_us: int | None = None

    @classmethod
    def of(cls, on_air: OnAir, chain: Chain) -> ShippedPlan:
        """The plan of a query as it is on the air, with the server's tables that it joins."""
        shape: Shape = chain.shape_at(on_air.cut)
        tables = {
            join.table.name: table_rows(join.table)
            for join in chain.operators[on_air.cut :]
            if isinstance(join, TableJoin) and join.table.path is not None
        }
        steps = chain.shipped(on_air.cut)
        return cls(
            on_air.plan, on_air.cut, shape.schema, shape.event_time, steps, tables, on_air.after_us
        )

    def to_record(self) -> dict[str, Any]:
        """The plan as plain values; :meth:`from_record` reads it back."""
        return {
            "plan": self.plan,
            "cut": self.cut,
            "schema": str(self.schema),
            "event_time": self.event_time,
            "steps": [step.to_record() for step in self.steps],
            "tables": {
                name: base64.b64encode(payload_of(rows)).decode()
                for name, rows in self.tables.items()
            },
            "after_us": self.after_us,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ShippedPlan:
        """The plan that :meth:`to_record` gave; raises ``ValueError`` for anything else."""
        tables = {}
        for name, text in record["tables"].items():
            rows = rows_of(base64.b64decode(text))
            if rows is None:
                raise ValueError(f"table {name} is damaged")
            tables[name] = rows
        return cls(
            record["plan"],
            record["cut"],
            Schema.parse(record["schema"]),
            record["event_time"],
            tuple(map(DeviceStep.from_record, record["steps"])),
            tables,
            record["after_us"],
        )
