"""The partition group of every row, computed by Spark: the numbers of ``kernels.group_numbers``."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.model.partition_groups import BETWEEN, NOTHING, PartitionGroups


def group_column(groups: PartitionGroups) -> Column:
    """The number of each row's group, to be computed by Spark."""
    texts = [F.coalesce(F.col(f"`{key}`").cast("string"), F.lit(NOTHING)) for key in groups.keys]
    check = F.crc32(F.encode(F.concat_ws(BETWEEN, *texts), "UTF-8"))
    return F.pmod(check, F.lit(groups.count)).cast("int")
