"""Which engine runs a fragment: what is asked for, what can be, and why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.kernels.engine_choice import EngineChoice, choose_engine
from penstock.lang.deployment import parse_deployment
from penstock.model.engines import EngineName
from penstock.model.windows import SessionWindow
from penstock.place.fuse import fuse

pytestmark = pytest.mark.core

DEPLOYMENT = """
streams:
  s: {source: {directory: in, format: csv}, schema: "ts timestamp, k string, v bigint", event_time: ts, lateness: 0s}
  t: {source: {kafka: "h:1", topic: t}, schema: "ts timestamp, v bigint", event_time: ts, lateness: 0s}
queries:
  q: {sql: "SQL", ENGINE}
"""  # noqa: E501
WINDOW = "window(ts, '1 minute')"


def chosen(sql: str, asked: str = "", default: EngineName | None = None) -> EngineChoice:
    engine = f"engine: {asked}" if asked else "to: console"
    text = DEPLOYMENT.replace("SQL", sql).replace("ENGINE", engine)
    network = parse_deployment(text, "d.yaml", Path()).network
    (fragment,) = fuse(network)
    return choose_engine(network, fragment, default)


def test_windows_over_one_stream_are_light() -> None:
    choice = chosen(
        f"SELECT k, sum(v) AS v FROM s WHERE v > 3 GROUP BY k, {WINDOW} HAVING sum(v) > 9"
    )
    assert (choice.engine, choice.reason) == ("light", "windows over one stream")
    assert choice.plan is not None and choice.plan.stream == "s"


def test_so_are_windows_over_a_topic() -> None:
    assert chosen(f"SELECT count(*) AS n FROM t GROUP BY {WINDOW}").engine == "light"


def test_sessions_over_one_stream_are_light() -> None:
    choice = chosen("SELECT k, sum(v) AS v FROM s GROUP BY k, session_window(ts, '1 minute')")
    assert (choice.engine, choice.reason) == ("light", "sessions over one stream")
    assert choice.plan is not None and choice.plan.window == SessionWindow(60_000_000)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT v FROM s WHERE v > 3", "it has no windowed aggregate"),
        (
            f"SELECT approx_count_distinct(k) AS n FROM s GROUP BY {WINDOW}",
            "kernels cannot compute approx_count_distinct(`k`)",
        ),
        (
            f"SELECT max(ts + INTERVAL 1 DAY) AS d FROM s GROUP BY {WINDOW}",
            "kernels cannot keep (`ts` + INTERVAL '86400.000000' SECOND) within the calendar",
        ),
    ],
)
def test_what_kernels_cannot_run_is_native_and_light_is_refused(sql: str, reason: str) -> None:
    choice = chosen(sql)
    assert (choice.engine, choice.reason) == ("native", reason)
    with pytest.raises(InputError) as refused:
        chosen(sql, "light")
    assert str(refused.value) == (
        f"query q asks for the light engine, which cannot run it: {reason}. "
        "Leave engine out, or say engine: native."
    )


def test_what_is_asked_for_counts_before_what_a_node_does() -> None:
    sql = f"SELECT count(*) AS n FROM s GROUP BY {WINDOW}"
    assert chosen(sql, "native").reason == "q asks for it"
    assert chosen(sql, default="native").reason == "this node runs all queries so"
    assert chosen(sql, "light", default="native").engine == "light"
