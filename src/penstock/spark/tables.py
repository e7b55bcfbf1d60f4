"""Tables from files, read once at the start."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from penstock.feeds.table_rows import table_rows
from penstock.model.sources import Table


def table_frame(session: SparkSession, table: Table) -> DataFrame:
    """The table as a Spark frame."""
    return session.createDataFrame(table_rows(table))
