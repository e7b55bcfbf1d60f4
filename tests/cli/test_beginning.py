"""Beginning: projects that run, and the schema that editors know deployment files by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from cli.shell import Here
from penstock.cli.init_command import Project
from penstock.cli.main import app
from penstock.lang.deployment import devices, ends, reading
from penstock.lang.deployment.json_schema import deployment_schema

pytestmark = pytest.mark.core
EXAMPLES = Path(__file__).parents[2] / "examples"
PROJECTS = Path(__file__).parents[2] / "src" / "penstock" / "cli" / "projects"
FILES = sorted([*EXAMPLES.rglob("*.yaml"), *PROJECTS.rglob("*.yaml")])
fits = fastjsonschema.compile(deployment_schema())


def parsed(text: str) -> Any:
    return YAML(typ="safe").load(text)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_example_fits_the_schema(file: Path) -> None:
    written = parsed(file.read_text())
    if "operators" in written or ("broadcast" in written and "streams" not in written):
        pytest.skip("operators by cost, not a deployment")
    fits(written)


@pytest.mark.parametrize(
    "text",
    [
        "streems: {}",
        "streams: {s: {source: {generate: meters}, latenes: 2min}}",
        "streams: {s: {source: {directory: in, patern: x}}}",
        "queries: {q: {sql: SELECT 1, too: console}}",
        "queries: {q: {sql: SELECT 1, to: screen}}",
        "queries: {q: {sql: SELECT 1, engine: heavy}}",
        "queries: {a b: SELECT 1}",
        "nodes: {a: {cores: 0}}",
        "tables: {t: {file: a.csv}}",
    ],
)
def test_what_reading_refuses_for_its_form_the_schema_does_too(text: str) -> None:
    with pytest.raises(fastjsonschema.JsonSchemaException):
        fits(parsed(text))


def keys(schema: dict[str, Any], *path: str) -> set[str]:
    """All keys that the schema has anywhere in one of the forms of a named thing."""
    for part in path:
        schema = schema["properties"][part]
    named = schema.get("additionalProperties") or schema
    forms = named.get("anyOf", [named])
    return {key for form in forms for key in form.get("properties", {})}


def test_the_schema_has_every_key_that_is_read() -> None:
    schema = deployment_schema()
    assert set(schema["properties"]) == set(reading._SECTIONS)
    made = {*reading._OUTSIDE, *reading._SQL, *reading._PYTHON, *reading._SWITCH}
    assert keys(schema, "streams") == made
    query = {*reading._SQL, *reading._PYTHON, *reading._TIMED, *reading._QUERY}
    assert keys(schema, "queries") == query
    tables = {*ends._FILE_TABLE, *ends._DATABASE_TABLE, "on"}
    assert keys(schema, "tables") == tables
    assert keys(schema, "devices") == {*devices._DEVICE, "queries"}
    assert keys(schema, "broadcast") == {*devices._BROADCAST, *devices._SETTINGS}
    stream = schema["properties"]["streams"]["additionalProperties"]["anyOf"][0]
    sources = keys(stream["properties"]["source"])
    assert sources == {*ends._DIRECTORY, *ends._REPLAY, *ends._KAFKA, "generate"}


def test_the_command_prints_it() -> None:
    assert json.loads(CliRunner().invoke(app, ["schema"]).stdout) == deployment_schema()


@pytest.mark.parametrize("project", list(Project))
def test_a_project_is_right_and_never_overwritten(
    tmp_path: Path, here: Here, project: Project
) -> None:
    told = here("init", str(project), "--json", folder=tmp_path, KAFKA="localhost:1")
    assert told.returncode == 0, told.stderr
    written = json.loads(told.stdout)["files"]
    assert f"{project}.yaml" in written and "penstock.schema.json" in written
    checked = here("check", f"{project}.yaml", folder=tmp_path, KAFKA="localhost:1")
    assert (checked.returncode, checked.stderr) == (0, "")
    before = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    again = here("init", str(project), folder=tmp_path)
    assert again.returncode == 1
    assert "is there already. Give another folder with --into" in again.stderr
    assert {path: path.read_text() for path in before} == before
