"""Building queries in Python; nothing is executed, everything is checked."""

from penstock.lang.builder import sinks, sources
from penstock.lang.builder.aggregations import (
    Aggregation,
    approx_count_distinct,
    avg,
    count,
    count_if,
    max,
    max_by,
    min,
    min_by,
    stddev,
    sum,
    variance,
)
from penstock.lang.builder.code import python_code
from penstock.lang.builder.entry import deployment, sql, stream, table
from penstock.lang.builder.flow import Flow, Windowed
from penstock.lang.builder.generators import generate

__all__ = [
    "Aggregation",
    "Flow",
    "Windowed",
    "approx_count_distinct",
    "avg",
    "count",
    "count_if",
    "deployment",
    "generate",
    "max",
    "max_by",
    "min",
    "min_by",
    "python_code",
    "sinks",
    "sources",
    "sql",
    "stddev",
    "stream",
    "sum",
    "table",
    "variance",
]
