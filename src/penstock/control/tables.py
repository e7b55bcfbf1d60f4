"""The tables of the catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa

from penstock.control.codec import Codec
from penstock.control.plan_codec import PlanCodec
from penstock.model.beginnings import Begun
from penstock.model.measurements import FragmentStatus, NodeSample
from penstock.model.sharing import NOTHING_SHARED, Sharing

Record = TypeVar("Record")

VERSION = 8
"""The version of these tables; those of an older one are changed by ``migrations``."""

metadata = sa.MetaData()


class RecordCodec(Protocol[Record]):
    """Writes records as JSON texts and reads them."""

    def encode(self, record: Record) -> str:
        """The record as JSON."""

    def decode(self, text: str) -> Record:
        """The record in a text."""


class RecordType(sa.types.UserDefinedType[Record]):
    """A column of records in a codec's JSON; an empty object is read as ``empty``."""

    cache_ok = True

    def __init__(self, codec: RecordCodec[Record], empty: Record | None = None) -> None:
        self.codec = codec
        self.empty = empty

    def get_col_spec(self, **_: object) -> str:
        return "JSON"

    def bind_processor(self, _: sa.Dialect) -> Callable[[Record | None], str]:
        return lambda record: "{}" if record is None else self.codec.encode(record)

    def column_expression(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        # As text: a driver would make dictionaries of it first.
        return sa.type_coerce(sa.cast(column, sa.Text), self)

    def result_processor(self, _: sa.Dialect, __: object) -> Callable[[str | None], Record | None]:
        return lambda text: self.empty if text in (None, "{}") else self.codec.decode(text)


meta = sa.Table(
    "penstock_meta",
    metadata,
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

submissions = sa.Table(
    "penstock_submissions",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("folder", sa.Text, nullable=False),
    sa.Column("max_latency_us", sa.BigInteger),
    sa.Column("begun", RecordType(Codec(Begun), Begun()), nullable=False),
    sa.Column("sharing", RecordType(PlanCodec(Sharing), NOTHING_SHARED), nullable=False),
    sa.Column("is_dropped", sa.Boolean, nullable=False, default=False),
)

plans = sa.Table(
    "penstock_plans",
    metadata,
    sa.Column("submission", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("plan", sa.Text, nullable=False),
)

settings = sa.Table(
    "penstock_settings",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("record", sa.Text, nullable=False),
    sa.Column("set_by", sa.String(10), nullable=False),
)

nodes = sa.Table(
    "penstock_nodes",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("cores", sa.Integer, nullable=False),
    sa.Column("memory_bytes", sa.BigInteger, nullable=False),
    sa.Column("incarnation", sa.String(40), nullable=False, default=""),
    sa.Column("pid", sa.Integer, nullable=False, default=0),
    sa.Column("version", sa.String(40), nullable=False, default=""),
    sa.Column("lease_until_s", sa.Float, nullable=False, default=0.0),
    sa.Column("joined_s", sa.Float, nullable=False, default=0.0),
    sa.Column("parent", sa.String(200)),
)

contacts = sa.Table(
    "penstock_contacts",
    metadata,
    sa.Column("node", sa.String(200), primary_key=True),
    sa.Column("life", sa.String(40), nullable=False),
    sa.Column("address", sa.String(200), nullable=False),
    sa.Column("heard", sa.JSON, nullable=False, default=dict),
    sa.Column("heard_s", sa.Float, nullable=False, default=0.0),
)

units = sa.Table(
    "penstock_units",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("submission", sa.Integer, nullable=False),
    sa.Column("node", sa.String(200)),
    sa.Column("epoch", sa.Integer, nullable=False, default=0),
    sa.Column("previous", sa.String(200)),
    sa.Column("released_epoch", sa.Integer, nullable=False, default=0),
    sa.Column("state", sa.String(20), nullable=False, default="waiting"),
    sa.Column("reported_epoch", sa.Integer, nullable=False, default=0),
    sa.Column("error", sa.Text, nullable=False, default=""),
    sa.Column("restarts", sa.Integer, nullable=False, default=0),
    sa.Column("pinned", sa.String(200)),
    sa.Column("planned", sa.String(200)),
    sa.Column("belongs", sa.String(200)),
    sa.Column("returns", sa.Integer, nullable=False, default=0),
    sa.Column("is_dropped", sa.Boolean, nullable=False, default=False),
    sa.Column("is_unread", sa.Boolean, nullable=False, default=False),
    sa.Column("assigned_s", sa.Float),
    sa.Column("lost_s", sa.Float),
    sa.Column("since_s", sa.Float),
    sa.Column("released_s", sa.Float),
    sa.Column("measured", RecordType(Codec(FragmentStatus)), nullable=False, default=None),
)

moves = sa.Table(
    "penstock_moves",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("unit", sa.String(200), nullable=False),
    sa.Column("source", sa.String(200), nullable=False),
    sa.Column("target", sa.String(200), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("is_warm", sa.Boolean, nullable=False, default=False),
    sa.Column("created_s", sa.Float, nullable=False),
    sa.Column("ended_s", sa.Float),
    sa.Column("pause_s", sa.Float),
    sa.Column("reason", sa.Text, nullable=False, default=""),
    sa.Column("numbers", sa.JSON, nullable=False, default=dict),
    sa.Column("error", sa.Text, nullable=False, default=""),
    # A number is never used again, not even that of a row which was taken out.
    sqlite_autoincrement=True,
)

events = sa.Table(
    "penstock_events",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at_s", sa.Float, nullable=False),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("subject", sa.String(200), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("numbers", sa.JSON, nullable=False, default=dict),
    sqlite_autoincrement=True,
)

samples = sa.Table(
    "penstock_samples",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("node", sa.String(200), nullable=False, index=True),
    sa.Column("at_s", sa.Float, nullable=False),
    sa.Column("numbers", RecordType(Codec(NodeSample)), nullable=False),
)
