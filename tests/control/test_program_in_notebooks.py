"""What a notebook shows of a system and of a query that runs; rows and names are only ever text."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from control.test_client import SYSTEM
from control.test_latencies import fragment
from penstock.control.answer_models import RowsAnswer
from penstock.control.client import Client
from penstock.control.program import RunningQuery, RunningSystem

pytestmark = pytest.mark.core
HOSTILE = "<img src=x onerror=alert(1)>"


class ToyClient:
    """Answers what it was told to."""

    url = "http://127.0.0.1:7400"

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def system(self) -> Any:
        return SYSTEM.model_copy(update={"fragments": [fragment("peaks", rows_out=1_200)]})

    def fragments(self) -> Any:
        return self.system().fragments

    def rows(self, *_: object) -> RowsAnswer:
        return RowsAnswer(next=1, ended=False, rows=self._rows)

    def results(self, *_: object) -> Any:
        return iter([pa.table({"home": ["h1"]}), pa.table({"home": ["h2", "h3"]})])


def client(*rows: dict[str, Any]) -> Client:
    return cast(Client, ToyClient(list(rows)))


def test_a_system() -> None:
    shown = RunningSystem(client())._repr_html_()
    assert "<td>peaks</td><td>a</td><td>running</td>" in shown and "<td>1,200</td>" in shown


def test_a_query_and_its_newest_rows() -> None:
    shown = RunningQuery("peaks", client({"home": HOSTILE, "kwh": 3.5}))._repr_html_()
    assert "<th>home</th><th>kwh</th>" in shown and "<td>3.5</td>" in shown
    assert HOSTILE not in shown and "&lt;img" in shown
    assert "no rows in the last minute" in RunningQuery("peaks", client())._repr_html_()


def test_a_notebook_is_told_how_many_rows_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    query = RunningQuery("peaks", client())
    assert len(query.to_pandas()) == 3
    assert capsys.readouterr().err == ""
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", cast(Any, shell))
    assert len(query.to_pandas()) == 3
    assert capsys.readouterr().err == "\rpeaks: 1 rows\rpeaks: 3 rows\n"
