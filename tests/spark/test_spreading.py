"""Points of a study on a cluster: the same results, progress, and failures in plain words."""

import math
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.errors import RunError, UnreachableError, UsageError
from penstock.spark.exact_json import decoded, encoded
from penstock.spark.masters import checked
from penstock.spark.spreading import (
    Cluster,
    cluster,
    explained,
    installed,
    result_of,
    same_version,
)
from penstock.studies import random_matrices
from penstock.studies.running import one_by_one

LOG = Path("spark.log")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)


def bits(value: Any) -> Any:
    """A value in which nothing is equal that is not the same: not 1 and 1.0, not 0.0 and -0.0."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    if isinstance(value, tuple | list):
        return [type(value).__name__, *map(bits, value)]
    if isinstance(value, dict):
        return [(bits(key), bits(one)) for key, one in value.items()]
    return type(value).__name__, value


@pytest.mark.core
@given(values)
def test_encoding_is_exact(value: Any) -> None:
    assert bits(decoded(encoded(value))) == bits(value)


@pytest.mark.core
def test_what_cannot_be_carried() -> None:
    with pytest.raises(TypeError, match=r"a value of type object cannot be carried: <object"):
        encoded([object()])


@pytest.mark.core
@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*]", "local-cluster[2,1,1024]", "spark://a.b:7077,c:1"]
)
def test_masters(master: str) -> None:
    assert checked(master) == master


@pytest.mark.core
@pytest.mark.parametrize("master", ["", "locl[2]", "local[x]", "spark://host", "yarn", "a:7077"])
def test_no_masters(master: str) -> None:
    with pytest.raises(UsageError) as raised:
        checked(master)
    assert str(raised.value) == (
        f"no Spark master {master}. There are local, local[N], "
        "local-cluster[N,CORES,MEGABYTES] and spark://HOST:PORT."
    )


@pytest.mark.core
def test_a_master_that_does_not_answer() -> None:
    with socket.socket() as taken:  # bound but not listening: nobody answers
        taken.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UnreachableError) as raised, cluster(master, LOG):
            raise AssertionError("there is no master")
    assert str(raised.value) == (
        f"no Spark master answers at {master} ({master[8:]}: Connection refused). "
        "Is it running, and is this its address?"
    )


@pytest.mark.core
def test_what_goes_wrong_names_the_point() -> None:
    with pytest.raises(RunError) as raised:
        result_of(math.sqrt, encoded(-1.0), "2 of 3")
    assert str(raised.value) == "point 2 of 3, -1.0, failed: ValueError: math domain error"


@pytest.mark.core
def test_another_version_is_refused() -> None:
    same_version(installed())
    with pytest.raises(RunError) as raised:
        same_version("0.0.1")
    assert str(raised.value) == (
        f"{socket.gethostname()} has penstock {installed()}, not 0.0.1 as this machine has"
    )


@pytest.mark.core
def test_executors_without_penstock() -> None:
    failure = explained(
        RuntimeError("a\nModuleNotFoundError: No module named 'penstock'"), "spark://a:7077", LOG
    )
    assert isinstance(failure, UnreachableError)
    assert str(failure) == (
        f"the executors of spark://a:7077 cannot import penstock. Install penstock {installed()} "
        "there; PYSPARK_PYTHON names their interpreter."
    )


@pytest.fixture
def spread(session: SparkSession) -> Cluster:
    return Cluster(session, "local[2]", LOG)


def test_results_are_those_of_this_process_in_order(spread: Cluster) -> None:
    said: list[str] = []
    found = spread(random_matrices.measure, range(4), said.append)
    assert bits(found) == bits(one_by_one(random_matrices.measure, range(4), lambda what: None))
    assert said[0] == "waiting for executors of local[2]"
    assert said[-1] == "point 4 of 4"


def test_progress_is_told_as_points_finish(spread: Cluster) -> None:
    said: list[str] = []
    assert spread(time.sleep, [0.5, 0.5, 0.5, 0.5, 0.5, 0.5], said.append) == [None] * 6
    numbers = [int(one.split()[1]) for one in said[1:]]
    assert numbers == sorted(numbers)
    assert len(numbers) > 1


def test_no_points(spread: Cluster) -> None:
    assert spread(math.sqrt, [], print) == []


def test_a_failing_point_is_named_without_a_traceback(spread: Cluster) -> None:
    with pytest.raises(RunError) as raised:
        spread(math.sqrt, [4.0, -1.0], lambda what: None)
    assert str(raised.value) == (
        "point 2 of 2, -1.0, failed: ValueError: math domain error. Details are in spark.log."
    )
    assert spread(math.sqrt, [4.0], lambda what: None) == [2.0]


def test_a_process_that_dies(spread: Cluster) -> None:
    with pytest.raises(RunError) as raised:
        spread(os._exit, [3], lambda what: None)
    assert str(raised.value).startswith("the study failed on local[2]: ")
    assert len(str(raised.value).splitlines()) == 1


def study(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock.cli", "study", "random-matrices", "--quick"]
    return subprocess.run([*command, *options], capture_output=True, text=True, timeout=500)


def written(folder: Path, *options: str) -> tuple[str, dict[str, bytes]]:
    told = study(*options, "--out", str(folder))
    assert (told.returncode, told.stderr) == (0, "")
    files = {path.name: path.read_bytes() for path in (folder / "random-matrices").iterdir()}
    return told.stdout.replace(str(folder), ""), files


@pytest.mark.timeout(600)  # two Java processes: seconds, but minutes on a very busy machine
def test_files_are_those_of_local_processes(tmp_path: Path) -> None:
    """From executors of their own, and from a process of this machine."""
    printed, files = written(tmp_path / "cluster", "--spark", "local-cluster[1,2,1024]")
    assert (printed, files) == written(tmp_path / "local", "--workers", "1")
    assert {"random-matrices.csv", "summary.csv", "axis-bound.svg"} <= set(files)


def test_a_wrong_master_at_the_command_line() -> None:
    told = study("--spark", "locl[2]")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("no Spark master locl[2]. There are local, ")
    told = study("--spark", "local[2]", "--workers", "2")
    assert told.returncode == 2
    assert told.stderr == (
        "--workers 2 and --spark local[2] exclude each other. "
        "A cluster uses all the cores it has.\n"
    )
