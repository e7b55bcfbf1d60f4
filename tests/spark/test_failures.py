"""What Spark says when it fails, in our words."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.errors import InputError, PenstockError, RunError
from penstock.spark.failures import explained, is_passing

pytestmark = pytest.mark.core

LOG = Path("/var/state/log/spark.log")

# A user's function that failed, as Spark 4.3 hands it on, shortened.
PYTHON_FAILED = """\
[STREAM_FAILED] Query [id = 3f1e, runId = 9a70] terminated with exception: Job aborted due to \
stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0: \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/lib/pyspark/worker.py", line 1830, in main
    process()
  File "/home/me/cleaning.py", line 7, in drop_spikes
    return rows.filter(rows["kwh"] < limit)
KeyError: 'limit'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/me/cleaning.py", line 9, in drop_spikes
    raise ValueError("no limit given")
ValueError: no limit given

	at org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
SQLSTATE: XXKST"""

OURS_FAILED = """\
[STREAM_FAILED] Query [id = 3f1e, runId = 9a70] terminated with exception: \
[PYTHON_DATA_SOURCE_ERROR] Failed when Python data source `penstock` performs read:
Traceback (most recent call last):
  File "/lib/pyspark/worker.py", line 1830, in main
    process()
penstock.errors.RunError: the channel file /var/state/a.parquet cannot be read (not Parquet). \
Restore the file from a backup, or start afresh with --fresh.
 SQLSTATE: 38000"""

GOES_ON = f"Details are in {LOG}. The same command goes on from the last finished batch."


def told(error: BaseException) -> str:
    found = explained(error, "heavy", LOG)
    assert isinstance(found, PenstockError)
    return str(found)


@pytest.mark.parametrize("error", [InputError("no file a.csv"), RunError("broken")])
def test_our_own_errors_stay_as_they_are(error: PenstockError) -> None:
    assert explained(error, "heavy", LOG) is error


def test_a_users_function_is_quoted_by_its_last_error() -> None:
    assert told(RuntimeError(PYTHON_FAILED)) == (
        f"heavy stopped: ValueError: no limit given. {GOES_ON}"
    )


def test_our_errors_from_other_processes_are_told_in_their_words() -> None:
    assert told(RuntimeError(OURS_FAILED)) == (
        "heavy stopped: the channel file /var/state/a.parquet cannot be read (not Parquet). "
        "Restore the file from a backup, or start afresh with --fresh. "
        f"Details are in {LOG}."
    )


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "Kein Platz"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("java.io.IOException: No space left on device\n\tat java.base/..."),
    ],
)
def test_a_full_disk(error: BaseException) -> None:
    assert told(error) == (
        "heavy stopped: the disk under /var/state is full. "
        "Free some space and run the same command again; nothing accepted is lost."
    )


def test_anything_else_is_told_by_its_first_line() -> None:
    text = "[UNRESOLVED_COLUMN] A column `x` cannot be resolved.\nmore\nand more"
    assert told(RuntimeError(text)) == (
        f"heavy stopped: [UNRESOLVED_COLUMN] A column `x` cannot be resolved. {GOES_ON}"
    )


def test_an_error_without_words_is_told_by_its_kind() -> None:
    assert told(MemoryError()) == f"heavy stopped: MemoryError. {GOES_ON}"


def test_other_errors_of_files_are_told_as_they_are() -> None:
    error = PermissionError(errno.EACCES, "Permission denied", "/in")
    assert told(error) == f"heavy stopped: [Errno 13] Permission denied: '/in'. {GOES_ON}"


def test_only_a_slow_start_may_pass() -> None:
    assert is_passing(RuntimeError("x: Python worker failed to connect back.\n\tat y"))
    assert not is_passing(RuntimeError(PYTHON_FAILED))
