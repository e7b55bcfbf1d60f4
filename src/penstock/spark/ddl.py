"""Spark's text form of a schema."""

from __future__ import annotations

from penstock.model.schema import Schema


def spark_ddl(schema: Schema) -> str:
    """The columns as Spark DDL.

    >>> spark_ddl(Schema.parse("home string, kwh double"))
    '`home` string, `kwh` double'
    """
    return ", ".join(f"`{field.name}` {field.type}" for field in schema)
