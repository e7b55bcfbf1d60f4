"""Reports: what agrees, the stable form, files that are the same every time."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli import study_command
from penstock.cli.main import app
from penstock.cli.study_command import report_lines
from penstock.errors import InputError
from penstock.studies import registry
from penstock.studies.figures import Figure
from penstock.studies.report import Runner, Say, StudyReport, near, records, within
from penstock.studies.writing import write

TABLE = records(
    "sizes",
    [
        {"operators": count, "algorithm": name, "ratio": count / 100 * scale}
        for count in (25, 50)
        for name, scale in (("rod", 1.0), ("llf", 0.5))
    ],
)


def made_up(agrees: bool = True) -> StudyReport:
    rows = (
        near("ratio at 50", 0.5, 0.52, 0.05),
        within("rod is ahead", None, 2.0 if agrees else 0.5, low=1.0, note="factor"),
    )
    figures = (
        Figure("lines", "sizes", "operators", "ratio", by="algorithm", spread=True),
        Figure("cloud", "sizes", "operators", "ratio", kind="scatter", log_y=True, bound="ratio"),
        Figure("dots", "sizes", "algorithm", "ratio", kind="dots"),
    )
    return StudyReport("made-up", rows, (TABLE,), figures, "All of it made up.")


def test_rows_agree_within_their_bounds() -> None:
    assert [row.agrees for row in made_up(False).rows] == [True, False]
    assert not made_up(False).agrees


def test_the_stable_form() -> None:
    assert made_up().as_dict() == {
        "study": "made-up",
        "rows": [
            {
                "quantity": "ratio at 50",
                "source": 0.5,
                "ours": 0.52,
                "low": 0.45,
                "high": 0.55,
                "agrees": True,
                "note": "",
            },
            {
                "quantity": "rod is ahead",
                "source": None,
                "ours": 2.0,
                "low": 1.0,
                "high": None,
                "agrees": True,
                "note": "factor",
            },
        ],
    }


def test_files_are_the_same_every_time(tmp_path: Path) -> None:
    first, second = (write(made_up(), tmp_path / name) for name in ("a", "b"))
    names = ["summary.csv", "sizes.csv", "lines.svg", "cloud.svg", "dots.svg"]
    assert [path.name for path in first] == names
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert first[1].read_text().splitlines()[:2] == ["operators,algorithm,ratio", "25,rod,0.25"]
    assert ">rod<" in first[2].read_text()
    assert ">llf<" in first[4].read_text()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as raised:
        write(made_up(), tmp_path / "file")
    assert str(raised.value) == (
        f"{tmp_path}/file cannot be written: File exists. Choose another folder with --out."
    )


def test_a_report_as_lines() -> None:
    assert report_lines(made_up()) == [
        "made-up",
        " All of it made up.",
        "    quantity      source says  agrees if     we get",
        " ✓  ratio at 50   0.5          0.45 to 0.55  0.52",
        " ✓  rod is ahead               >= 1          2       factor",
        " all agree",
    ]


@pytest.fixture
def only_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def study(quick: bool, say: Say, run: Runner) -> StudyReport:
        return made_up(agrees=quick)

    monkeypatch.setattr(registry, "STUDIES", {"made-up": "nothing"})
    monkeypatch.setattr(registry, "study_called", lambda name: study)


def test_the_command(only_made_up: None, tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["study", "made-up", "--quick", "--out", str(tmp_path)])
    assert told.exit_code == 0
    assert f"wrote {tmp_path}/made-up/lines.svg" in told.output
    told = CliRunner().invoke(app, ["study", "all", "--quick", "--json"])
    assert json.loads(told.output) == [made_up().as_dict()]


def test_disagreement_is_a_result_and_marked(only_made_up: None) -> None:
    told = CliRunner().invoke(app, ["study", "made-up"])
    assert told.exit_code == 0
    assert " ✗  rod is ahead" in told.output
    assert told.output.endswith(" 1 of 2 differ\n")


@pytest.mark.parametrize("name", ["made-up", "all"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_disagreement_fails_if_one_is_strict(
    only_made_up: None, name: str, form: tuple[str, ...]
) -> None:
    told = CliRunner().invoke(app, ["study", name, "--strict", *form])
    assert told.exit_code == 4
    assert "rod is ahead" in told.output
    told = CliRunner().invoke(app, ["study", name, "--strict", "--quick", *form])
    assert told.exit_code == 0


def test_help_says_what_exit_codes_mean() -> None:
    told = CliRunner().invoke(app, ["study", "--help"])
    text = " ".join(told.output.replace("│", " ").split())
    assert "0 when the study ran, whether ours and the source agree or not" in text
    assert "With --strict, 4 if anything differs." in text


def test_an_unknown_study(only_made_up: None) -> None:
    told = CliRunner().invoke(app, ["study", "mad-up"])
    assert str(told.exception) == ("no study mad-up. There are made-up, all. Did you mean made-up?")
    assert study_command.study.__doc__
