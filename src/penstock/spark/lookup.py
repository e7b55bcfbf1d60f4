"""Looking rows up in a database: one question per batch of rows, not per row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from pyspark.sql import DataFrame

from penstock.feeds.arrow import ARROW_TYPES, arrow_schema
from penstock.model.operators import SqlRead
from penstock.model.schema import Schema
from penstock.spark.ddl import spark_ddl

_KEYS_AT_ONCE = 500


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
    found = _found_rows(rows, operator)
    keys = [left for left, _ in operator.equal]
    how = "left outer" if operator.join == "left" else "inner"
    joined = rows.join(found, keys, [f"__key_{at}" for at in range(len(keys))], join_type=how)
    yield from joined.select(list(schema.names)).cast(arrow_schema(schema)).to_batches()


def _found_rows(rows: pa.Table, operator: SqlRead) -> pa.Table:
    columns = [(f"__key_{at}", right) for at, (_, right) in enumerate(operator.equal)]
    columns += list(operator.columns)
    table = sa.table(operator.table.stored_name, *map(sa.column, operator.table.schema.names))
    first_left, first_right = operator.equal[0]
    wanted = pc.unique(rows[first_left]).drop_null().to_pylist()
    select = sa.select(*(table.c[column].label(given) for given, column in columns))
    answers: list[sa.Row[tuple[object, ...]]] = []
    with engine_of(operator.database.url).connect() as connection:
        for at in range(0, len(wanted), _KEYS_AT_ONCE):
            part = wanted[at : at + _KEYS_AT_ONCE]
            answers += connection.execute(select.where(table.c[first_right].in_(part))).all()
    types = [operator.table.schema[column].type for _, column in columns]
    arrays = [
        pa.array([answer[at] for answer in answers], ARROW_TYPES[type])
        for at, type in enumerate(types)
    ]
    return pa.table(arrays, names=[given for given, _ in columns])


@lru_cache
def engine_of(url: str) -> sa.Engine:
    """The connection pool of a database, one a process."""
    return sa.create_engine(url, pool_pre_ping=True)
