"""The windowed aggregates of ``penstock bench density`` as one job of Flink, over the same rows.

Flink comes with an interpreter of its own, which the variable PENSTOCK_FLINK_PYTHON names. Rows
come to it as CSV, which it reads without further parts, and results go to CSV files.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow as pa
from pyarrow import csv

from penstock.bench.density_load import ROUND_S, windowed_aggregate
from penstock.errors import RunError, UsageError

VARIABLE = "PENSTOCK_FLINK_PYTHON"
_STATEMENTS = Path(__file__).with_name("flink_statements.py")
_LOOK_MS = 250
_SETTINGS = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.memory.process.size": "4g",
    "taskmanager.memory.network.max": "1g",
    "table.exec.source.idle-timeout": "1 s",
}
_READINGS = f"""
CREATE TABLE readings (
  us BIGINT, k STRING, v BIGINT, x DOUBLE,
  ts AS TO_TIMESTAMP_LTZ(us / 1000, 3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'format' = 'csv', 'path' = 'file://{{folder}}',
  'source.monitor-interval' = '{_LOOK_MS} ms'
)"""


def flink_python() -> str:
    """The interpreter that has Flink; raises if there is none."""
    named = os.environ.get(VARIABLE)
    if not named:
        raise UsageError(
            "--peer flink: no Flink is known here",
            hint=f"Give it an environment of its own (python -m venv flink; flink/bin/pip install "
            f"apache-flink) and name its interpreter: {VARIABLE}=flink/bin/python.",
        )
    try:
        asked = subprocess.run([named, "-c", "import pyflink"], capture_output=True, check=False)
    except OSError as error:
        raise UsageError(f"{VARIABLE}={named}: {error.strerror}", hint="Is it there?") from None
    if asked.returncode:
        raise UsageError(f"{VARIABLE}={named} has no apache-flink", hint="Install it there.")
    return named


def arrive_as_csv(rows: pa.Table, path: Path) -> None:
    """Puts rows into a directory as one CSV file, whole or not at all."""
    times = rows.column("ts").cast(pa.int64())
    table = pa.table({"us": times, **{name: rows.column(name) for name in ("k", "v", "x")}})
    hidden = path.with_name(f".{path.name}")
    csv.write_csv(table, hidden, csv.WriteOptions(include_header=False))
    hidden.replace(path)


def statements(queries: int, folder: Path) -> dict[str, object]:
    """The job: the stream of ``folder/in``, and a folder of results for each query."""
    wanted = [windowed_aggregate(number) for number in range(queries)]
    checkpoints = {
        "execution.checkpointing.interval": f"{1_000 * ROUND_S:.0f} ms",
        "execution.checkpointing.dir": f"file://{folder / 'checkpoints'}",
    }
    tables, inserts = [_READINGS.format(folder=folder / "in")], []
    for number, query in enumerate(wanted):
        key_type = "STRING" if query.key == "k" else "BIGINT"
        columns = "".join(
            f", `{name}` {'DOUBLE' if '(x)' in call else 'BIGINT'}" for name, call in query.results
        )
        tables.append(
            f"CREATE TABLE o{number} (`key` {key_type}, `at` TIMESTAMP_LTZ(3){columns}) WITH "
            f"('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = 'file://{folder / 'out' / str(number)}')"
        )
        key = query.key if key_type == "STRING" else f"MOD({query.key.replace(' % ', ', ')})"
        selected = ", ".join(f"{call} AS `{name}`" for name, call in query.results)
        inserts.append(
            f"INSERT INTO o{number} SELECT {key} AS `key`, window_end AS `at`, {selected} "
            f"FROM TABLE(HOP(TABLE readings, DESCRIPTOR(ts), INTERVAL '{query.slide_s}' SECOND, "
            f"INTERVAL '{query.size_s}' SECOND)) WHERE v >= {query.least_v} "
            f"GROUP BY {key}, window_start, window_end"
        )
    return {"settings": _SETTINGS | checkpoints, "tables": tables, "inserts": inserts}


@contextmanager
def flink_queries(queries: int, folder: Path) -> Iterator[int]:
    """The job while inside, once it runs; gives the number of its process."""
    job = folder / "job.json"
    job.write_text(json.dumps(statements(queries, folder)))
    log = folder / "flink.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [flink_python(), str(_STATEMENTS), str(job)], stdout=subprocess.PIPE, stderr=errors
        )
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != b"running":
                raise RunError("Flink's job did not start", hint=log.read_text()[-2_000:])
            yield process.pid
            if process.poll() is not None:
                raise RunError("Flink's job has ended", hint=log.read_text()[-2_000:])
        finally:
            for child in [*psutil.Process(process.pid).children(recursive=True)]:
                child.kill()
            process.kill()
            process.wait()
