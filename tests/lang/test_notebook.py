"""What notebooks show of flows."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.lang.notebook import is_notebook

pytestmark = pytest.mark.core


def test_a_flow() -> None:
    readings = ps.stream("readings", source=ps.generate.meters(days=1), lateness="2 min")
    shown = readings.filter("kwh > 3").named("peaks")._repr_html_()
    assert "<td>home</td><td>string</td>" in shown
    assert "kwh &gt; 3" in shown and "kwh > 3" not in shown
    assert "<b>readings</b>" in readings._repr_html_()


def test_a_program_is_no_notebook() -> None:
    assert not is_notebook()
