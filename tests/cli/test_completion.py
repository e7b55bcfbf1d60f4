"""What the shell completes."""

from pathlib import Path

import pytest

from cli.shell import Here
from penstock.cli import bench_command
from penstock.cli.completion import bench_names

FILE = """\
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  peaks: SELECT home FROM readings WHERE kwh > 2
  people: SELECT home FROM readings WHERE kwh > 3
  loud: SELECT home FROM readings WHERE kwh > 4
"""


def completed(here: Here, folder: Path, *words: str) -> list[str]:
    """What bash is offered for the last word."""
    told = here(
        folder=folder,
        _PENSTOCK_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(("penstock", *words)),
        COMP_CWORD=str(len(words)),
    )
    assert "Traceback" not in told.stderr
    return told.stdout.split()


def test_names_of_queries(tmp_path: Path, here: Here) -> None:
    (tmp_path / "ami.yaml").write_text(FILE)
    assert completed(here, tmp_path, "explain", "ami.yaml", "--query", "pe") == ["peaks", "people"]
    assert completed(here, tmp_path, "explain", "none.yaml", "--query", "pe") == []


def test_commands_and_formats(tmp_path: Path, here: Here) -> None:
    assert "explain" in completed(here, tmp_path, "ex")
    assert completed(here, tmp_path, "explain", "ami.yaml", "--format", "me") == ["mermaid"]


def test_names_of_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_command, "benches", lambda: {"start": None, "state": None})
    assert bench_names("st") == ["start", "state"]
    assert bench_names("a") == ["all"]
