"""Looking rows up in a database: one question per batch of rows, not per row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from pyspark.sql import DataFrame

from penstock.feeds.arrow import ARROW_TYPES, arrow_schema
from penstock.model.operators import SqlRead
from penstock.model.schema import Schema
from penstock.model.types import DataType, common_type
from penstock.spark.ddl import spark_ddl

_KEYS_AT_ONCE = 500
_ONE_AT_A_TIME = Lock()

SQL_TYPES: dict[DataType, sa.types.TypeEngine[Any]] = {
    DataType.BOOLEAN: sa.Boolean(),
    DataType.INT: sa.Integer(),
    DataType.BIGINT: sa.BigInteger(),
    DataType.DOUBLE: sa.Double(),
    DataType.STRING: sa.Text(),
    DataType.TIMESTAMP: sa.DateTime(timezone=True),
    DataType.DATE: sa.Date(),
    DataType.BINARY: sa.LargeBinary(),
}


def looked_up(operator: SqlRead, rows: DataFrame, needed: tuple[str, ...]) -> DataFrame:
    """The rows with the database's columns added, as the table stands when the batch runs."""
    kept = [field for field in operator.output.schema if _is_kept(operator, field.name, needed)]
    schema = Schema(tuple(kept))

    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from join_with_database(pa.Table.from_batches([batch]), operator, schema)

    names = [f"`{name}`" for name in operator.input.schema.names if name in needed]
    return rows.select(*names).mapInArrow(apply, spark_ddl(schema))


def _is_kept(operator: SqlRead, name: str, needed: tuple[str, ...]) -> bool:
    return name not in operator.input.schema or name in needed


def join_with_database(
    rows: pa.Table, operator: SqlRead, schema: Schema
) -> Iterator[pa.RecordBatch]:
    """``rows`` joined with the database's rows that have equal keys."""
    if rows.num_rows == 0:
        return
    types = _key_types(operator)
    found = _found_rows(rows, operator, types)
    # Arrow joins columns of one type only, so the keys are compared as what both can be read as.
    keyed = rows
    for at, (left, _) in enumerate(operator.equal):
        as_key = pc.cast(rows[left], ARROW_TYPES[types[at]], safe=False)
        keyed = keyed.append_column(f"__left_{at}", as_key)
    sides = [[f"__{side}_{at}" for at in range(len(types))] for side in ("left", "key")]
    how = "left outer" if operator.join == "left" else "inner"
    joined = keyed.join(found, *sides, join_type=how)
    yield from joined.select(list(schema.names)).cast(arrow_schema(schema)).to_batches()


def _key_types(operator: SqlRead) -> list[DataType]:
    types = []
    for left, right in operator.equal:
        theirs = operator.table.schema[right].type
        types.append(common_type(operator.input.schema[left].type, theirs) or theirs)
    return types


def _found_rows(rows: pa.Table, operator: SqlRead, key_types: list[DataType]) -> pa.Table:
    columns = [(f"__key_{at}", right) for at, (_, right) in enumerate(operator.equal)]
    columns += list(operator.columns)
    # With their types, so that what a database keeps in another form comes as what it means.
    fields = (sa.column(field.name, SQL_TYPES[field.type]) for field in operator.table.schema)
    table = sa.table(operator.table.stored_name, *fields)
    first_left, first_right = operator.equal[0]
    wanted = pc.unique(rows[first_left]).drop_null().to_pylist()
    select = sa.select(*(table.c[column].label(given) for given, column in columns))
    answers: list[sa.Row[tuple[object, ...]]] = []
    with engine_of(operator.database.url).connect() as connection:
        for at in range(0, len(wanted), _KEYS_AT_ONCE):
            part = wanted[at : at + _KEYS_AT_ONCE]
            answers += connection.execute(select.where(table.c[first_right].in_(part))).all()
    added = [operator.table.schema[column].type for _, column in operator.columns]
    types = [*key_types, *added]
    arrays = [
        pa.array([answer[at] for answer in answers], ARROW_TYPES[type])
        for at, type in enumerate(types)
    ]
    return pa.table(arrays, names=[given for given, _ in columns])


def engine_of(url: str) -> sa.Engine:
    """The connection pool of a database, one a process."""
    # Threads that asked at once would each make one, and all but one be lost with open connections.
    with _ONE_AT_A_TIME:
        return _made_engine(url)


@lru_cache
def _made_engine(url: str) -> sa.Engine:
    return sa.create_engine(url, pool_pre_ping=True)
