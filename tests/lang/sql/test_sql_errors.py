"""Every error text in full, with its pointer: the fixture ``errors.txt``, and longer texts."""

from __future__ import annotations

import pytest
from sql_samples import CATALOG, blocks, complaint, message, told

from penstock.errors import InputError
from penstock.lang.sql import parse_expression, parse_query
from penstock.model.schema import Schema


@pytest.mark.parametrize("case", blocks("errors.txt"), ids=lambda case: case.splitlines()[0])
def test_error(case: str) -> None:
    query, pointer, what = case.splitlines()
    assert complaint(query) == f"    {query}\n    {pointer}\n{what}"


def test_the_line_is_shown() -> None:
    text = "SELECT home, sum(kwh) AS kwh\nFROM readings GROUP BY hom, window(ts, '6 hours')\n"
    assert message(text) == told("""
        ami.yaml, query q, line 2:
            FROM readings GROUP BY hom, window(ts, '6 hours')
                                   ^^^
        no column hom in readings; it has ts, home, district, kwh. Did you mean home?
        """)


def test_carriage_returns_tabs_and_other_alphabets() -> None:
    text = "-- größer\r\nSELECT home\r\nFROM\treadings\tWHERE home = 'ä' AND\tkwj > 3"
    assert message(text) == told("""
        ami.yaml, query q, line 3:
            FROM readings WHERE home = 'ä' AND kwj > 3
                                               ^^^
        no column kwj in readings; it has ts, home, district, kwh. Did you mean kwh?
        """)


def test_syntax_errors_know_their_line() -> None:
    assert message("SELECT home\nFROM readings\nWHERE kwh >") == told("""
        ami.yaml, query q, line 3:
            WHERE kwh >
                      ^
        something is missing after >
        """)


def test_deep_nesting_is_refused() -> None:
    text = f"SELECT {'(' * 3000}1{')' * 3000} AS x FROM readings"
    assert message(text).endswith("the text is nested too deeply. Split it with WITH.")


def test_errors_in_expressions() -> None:
    with pytest.raises(InputError) as caught:
        parse_expression("kw > 9", Schema.parse("kwh double"), "filter")
    assert str(caught.value) == told("""
        filter, line 1:
            kw > 9
            ^^
        no column kw in the input; it has kwh. Did you mean kwh?
        """)


def test_the_name_of_a_query_is_checked() -> None:
    with pytest.raises(InputError, match="cannot name a query"):
        parse_query("my query", "SELECT home FROM readings", CATALOG)
