"""Every command of docs/power.md, run as shown, with the output compared."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.doc_pages import DocPage
from penstock.cli.main import app
from penstock.power.air.packets import DESCRIPTOR_BYTES, ENTRY_BYTES

PAGE = DocPage("power.md")
PROBLEM = PAGE.blocks("yaml")[0]


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "phones.yaml").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)
    PAGE.check_commands()


def test_the_error_that_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Speed 0 for the second device."""
    first, second = PROBLEM.split("ben: {speed: 1.0e9", 1)
    (tmp_path / "broken.yaml").write_text(f"{first}ben: {{speed: 0{second}")
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["power", "broken.yaml"])
    assert str(told.exception) in PAGE.text


def test_the_form_for_scripts(tmp_path: Path) -> None:
    path = tmp_path / "phones.yaml"
    path.write_text(PROBLEM)
    told = json.loads(CliRunner().invoke(app, ["power", str(path), "--json"]).output)
    (shown,) = json.loads(PAGE.blocks("json")[0])["plans"]
    assert all(list(plan) == list(shown) for plan in told["plans"])


def test_the_bytes_on_the_air() -> None:
    out = StringIO()
    with redirect_stdout(out):
        exec(PAGE.blocks("python")[0], {})
    size = 2 * ENTRY_BYTES + 2 * DESCRIPTOR_BYTES + 500
    heard = 2 * ENTRY_BYTES + DESCRIPTOR_BYTES + 400
    assert out.getvalue().splitlines() == [
        f"[2] {size}",
        f"{heard + len(b'noise')} 5 {size - heard}",
        f"[(0, {2 * ENTRY_BYTES}), ({size - DESCRIPTOR_BYTES - 400}, {size})]",
    ]
    assert f"| index entry | {ENTRY_BYTES} |" in PAGE.text
    assert f"| descriptor | {DESCRIPTOR_BYTES} |" in PAGE.text


def test_figures_exist() -> None:
    PAGE.check_results()


def test_the_deployment_that_is_shown_can_be_planned(tmp_path: Path) -> None:
    path, table = tmp_path / "portfolio.yaml", tmp_path / "anna.csv"
    path.write_text(next(block for block in PAGE.blocks("yaml") if "on: devices" in block))
    table.write_text("symbol,owned,paid\nS0001,100,55.0\n")
    told = CliRunner().invoke(app, ["power", str(path), "--table", f"portfolio={table}"])
    assert told.exit_code == 0, told.exception
    assert "ships" in told.output


def test_the_examples_can_be_planned() -> None:
    folder = Path(__file__).parents[2] / "examples" / "portfolio"
    own = ["--table", f"portfolio={folder / 'anna.csv'}"]
    for name, more in (("portfolio", own), ("meters", [])):
        told = CliRunner().invoke(app, ["power", str(folder / f"{name}.yaml"), *more])
        assert told.exit_code == 0, told.exception
