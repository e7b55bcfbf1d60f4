"""What Penstock uses of Spark, Hadoop and Java that nobody has promised to keep, and why.

Another version of Spark may have it in another form, and would fail in the middle of a batch with
an error of Java's. So sessions of versions that have not been tried are refused when they start,
and ``penstock doctor`` looks into Spark's archives for everything that is listed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from penstock.errors import UnreachableError, listed

SERIES = ("4.3",)
"""The versions of Spark in which all of this has been tried."""

SQL = "org.apache.spark.sql"
CONNECTOR = f"{SQL}.connector"
FILES = f"{SQL}.execution.datasources"
CATALYST = f"{SQL}.catalyst"
STREAMING = f"{SQL}.execution.streaming"
STATE = f"{STREAMING}.state"

INTERNALS: Mapping[str, tuple[str, ...]] = {
    "a channel as an input whose batches are planned here: no Python process per input": (
        f"{CATALYST}.streaming.StreamingRelationV2",
        f"{CATALYST}.streaming.Unassigned$",
        f"{CATALYST}.types.DataTypeUtils",
        f"{CATALYST}.expressions.GenericInternalRow",
        f"{SQL}.classic.Dataset",
        f"{SQL}.util.CaseInsensitiveStringMap",
        f"{CONNECTOR}.catalog.CatalogV2Util$",
        f"{CONNECTOR}.catalog.SupportsRead",
        f"{CONNECTOR}.catalog.TableCapability",
        f"{CONNECTOR}.metric.CustomMetric",
        f"{CONNECTOR}.metric.CustomTaskMetric",
        f"{CONNECTOR}.read.InputPartition",
        f"{CONNECTOR}.read.Scan",
        f"{CONNECTOR}.read.Scan$ColumnarSupportMode",
        f"{CONNECTOR}.read.ScanBuilder",
        f"{CONNECTOR}.read.streaming.MicroBatchStream",
        f"{CONNECTOR}.read.streaming.ReadLimit",
        f"{CONNECTOR}.read.streaming.SupportsAdmissionControl",
        f"{STREAMING}.runtime.SerializedOffset",
        "org.apache.spark.api.python.PythonUtils",
        "scala.Option",
    ),
    "Spark's own Parquet reader for the files of a channel": (
        f"{FILES}.FilePartition",
        f"{FILES}.PartitionedFile",
        f"{FILES}.parquet.ParquetOptions",
        f"{FILES}.parquet.ParquetReadSupport",
        f"{FILES}.v2.parquet.ParquetPartitionReaderFactory",
        f"{SQL}.sources.Filter",
        "org.apache.spark.paths.SparkPath",
        "org.apache.spark.util.SerializableConfiguration",
    ),
    "state that a coming owner reads before its turn": (
        f"{STATE}.NoPrefixKeyStateEncoderSpec",
        f"{STATE}.PrefixKeyScanStateEncoderSpec",
        f"{STATE}.StateSchemaCompatibilityChecker",
        f"{STATE}.StateSchemaCompatibilityChecker$",
        f"{STATE}.StateStore$",
        f"{STATE}.StateStoreConf$",
        f"{STATE}.StateStoreId",
        f"{STATE}.StateStoreProviderId",
    ),
    "which file of state it is that cannot be read": (
        "org.apache.commons.io.IOUtils",
        "org.apache.spark.io.CompressionCodec",
    ),
    "files without a process for the permissions of each": (
        "org.apache.hadoop.conf.Configuration",
        "org.apache.hadoop.fs.FileSystem",
        "org.apache.hadoop.fs.RawLocalFileSystem",
        "org.apache.hadoop.fs.local.RawLocalFs",
        "org.codehaus.janino.SimpleCompiler",
        f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    ),
    "filters that stay above the watermark, where heartbeats count": (
        f"{CATALYST}.optimizer.PushDownPredicates",
    ),
    "silence about batches that take longer than their interval": (
        "org.apache.logging.log4j.Level",
        "org.apache.logging.log4j.core.config.Configurator",
        f"{STREAMING}.runtime.ProcessingTimeExecutor",
    ),
    "a standalone cluster that is started here": (
        "org.apache.spark.deploy.master.Master",
        "org.apache.spark.deploy.worker.Worker",
    ),
}
"""What it is for, and the classes by their full names."""

_KNOWN = frozenset(name for names in INTERNALS.values() for name in names)


def is_known(name: str) -> bool:
    """Whether a class is listed; Java's own are public.

    >>> is_known("scala.Option"), is_known("java.util.HashMap"), is_known(f"{SQL}.classic.Other")
    (True, True, False)
    """
    return name.startswith("java.") or name in _KNOWN


def is_tried(version: str) -> bool:
    """Whether this has been tried with a version of Spark.

    >>> is_tried("4.3.2"), is_tried("4.30.0")
    (True, False)
    """
    return any(f"{version}.".startswith(f"{series}.") for series in SERIES)


def check_version(version: str) -> None:
    """Raises where a version of Spark runs that this has not been tried with."""
    if not is_tried(version):
        raise UnreachableError(
            f"Spark {version} runs here; Penstock uses internals of Spark as they are in "
            f"{listed(SERIES)}",
            hint=f'Install that: pip install "pyspark=={SERIES[-1]}.*". With SPARK_HOME set, its '
            "version counts.",
        )


def missing_internals(archives: Path) -> list[str]:
    """Which of the classes are in none of the archives (``*.jar``) in a folder."""
    wanted = {f"{name.replace('.', '/')}.class": name for name in _KNOWN}
    for archive in sorted(archives.glob("*.jar")):
        for entry in wanted.keys() & _entries(archive):
            del wanted[entry]
        if not wanted:
            break
    return sorted(wanted.values())


def _entries(archive: Path) -> Iterable[str]:
    try:
        with ZipFile(archive) as opened:
            return frozenset(opened.namelist())
    except (OSError, BadZipFile):
        return frozenset()
