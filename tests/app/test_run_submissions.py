"""A file run on several nodes, and what becomes of it as queries are added to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from penstock.app.run_plan import RunPlan, RunRequest, plan_run, remember_run
from penstock.app.run_submissions import keep_in_line, run_parts, submit_parts
from penstock.control.answer_models import BeginAnswer, QueryAnswer, SubmittedAnswer
from penstock.control.catalog import Catalog
from penstock.control.client import Client
from penstock.control.home import Home
from penstock.control.records import Submission, UnitRecord
from penstock.control.system import assemble
from penstock.errors import InputError

STREAMS = """
streams:
  readings:
    source: {generate: meters, homes: 4, days: 1, speedup: 600}
    lateness: 2min
  high: {sql: "SELECT ts, home, kwh FROM readings WHERE kwh > 1"}
nodes: {a: {cores: 1}, b: {cores: 1}}
queries:
"""
FIRST = """
  hourly: SELECT window.end AS at, max(kwh) AS kwh FROM high GROUP BY window(ts, '1 hour')
"""
ADDED = """
  six: SELECT window.end AS until, max(kwh) AS kwh FROM hourly GROUP BY window(at, '6 hours')
  homes: SELECT home, window.end AS at FROM high GROUP BY home, window(ts, '1 hour')
"""
TWO_STREAMS = STREAMS.replace(
    "streams:",
    """streams:
  weather:
    source: {generate: meters, homes: 2, days: 1, speedup: 600}
    lateness: 2min""",
)
OVER_OTHERS = """
  cold: SELECT ts, kwh FROM weather WHERE kwh < 1
  both: >
    SELECT r.ts, w.kwh FROM readings r JOIN weather w
    ON r.home = w.home AND w.ts BETWEEN r.ts AND r.ts + INTERVAL '1 minute'
  coldest: SELECT window.end AS at, min(kwh) AS kwh FROM cold GROUP BY window(ts, '1 hour')
"""


def plan(folder: Path, text: str) -> RunPlan:
    """The plan of a file that was run before if it is known from then."""
    path = folder / "tiny.yaml"
    path.write_text(text)
    made = plan_run(RunRequest(path))
    home(made).state.mkdir(parents=True, exist_ok=True)
    remember_run(made, RunRequest(path), home(made).state)
    return made


def home(plan: RunPlan) -> Home:
    return Home(plan.folder / "system")


def as_submissions(plan: RunPlan) -> list[Submission]:
    return [
        Submission(at + 1, part.name, "yaml", part.text, ".")
        for at, part in enumerate(run_parts(plan))
    ]


@pytest.fixture
def before(tmp_path: Path) -> RunPlan:
    return plan(tmp_path, STREAMS + FIRST)


@pytest.fixture
def catalog(before: RunPlan) -> Iterator[Catalog]:
    """The catalog of a system that has run the first queries and was stopped."""
    with closing(Catalog(home(before).catalog_url)) as made:
        made.prepare()
        (submission,) = as_submissions(before)
        made.add(vars(submission), [UnitRecord("hourly", "fragment", 1)])
        yield made


class TestParts:
    def test_those_that_were_there_first_are_one(self, before: RunPlan) -> None:
        (part,) = run_parts(before)
        assert (part.name, part.queries) == ("tiny", ["hourly"])

    def test_those_added_are_another_that_shares_only_streams_from_outside(
        self, before: RunPlan, tmp_path: Path
    ) -> None:
        first, second = run_parts(plan(tmp_path, STREAMS + FIRST + ADDED))
        assert first.text == run_parts(before)[0].text
        assert (second.name, second.queries) == ("tiny.1", ["six", "homes"])
        networks = (first.deployment.network, second.deployment.network)
        ours, theirs = ({operator.name for operator in network.operators} for network in networks)
        assert ours.isdisjoint(theirs)

    def test_those_added_over_other_streams_are_apart(
        self, before: RunPlan, tmp_path: Path
    ) -> None:
        grown = plan(tmp_path, TWO_STREAMS + FIRST + ADDED + OVER_OTHERS)
        parts = [(part.name, part.queries) for part in run_parts(grown)]
        assert parts == [
            ("tiny", ["hourly"]),
            ("tiny.1", ["six", "homes"]),
            ("tiny.1.1", ["cold", "coldest"]),
            ("tiny.1.2", ["both"]),
        ]
        units = assemble(as_submissions(grown)).units
        fragments = [unit.name for unit in units.values() if unit.fragment is not None]
        assert sorted(fragments) == sorted(fragment.name for fragment in grown.fragments)

    def test_the_system_runs_what_was_planned(self, before: RunPlan, tmp_path: Path) -> None:
        grown = plan(tmp_path, STREAMS + FIRST + ADDED)
        units = assemble(as_submissions(grown)).units
        fragments = [unit.name for unit in units.values() if unit.fragment is not None]
        assert sorted(fragments) == sorted(fragment.name for fragment in grown.fragments)
        assert [unit for unit in units if unit not in fragments] == ["readings"]


class TestInLine:
    def test_nothing_has_run(self, tmp_path: Path) -> None:
        keep_in_line(planned_afresh(tmp_path), Home(tmp_path / "nowhere"))

    def test_what_is_added_is_no_change(self, catalog: Catalog, tmp_path: Path) -> None:
        grown = plan(tmp_path, STREAMS + FIRST + ADDED)
        keep_in_line(grown, home(grown))
        assert len(catalog.submissions()) == 1

    def test_what_does_not_touch_state_is_taken_over(
        self, catalog: Catalog, tmp_path: Path
    ) -> None:
        sql = FIRST.partition(": ")[2].strip()
        changed = f'  hourly: {{sql: "{sql}", on: b, max_latency: 7s}}\n'
        now = plan(tmp_path, STREAMS + changed)
        keep_in_line(now, home(now))
        (submission,) = catalog.submissions()
        assert "max_latency: 7 seconds" in submission.text
        assert [unit.pinned for unit in catalog.units()] == ["b"]

    def test_a_changed_query_is_refused(self, catalog: Catalog, tmp_path: Path) -> None:
        now = plan(tmp_path, STREAMS + FIRST.replace("1 hour", "2 hours"))
        with pytest.raises(InputError) as refused:
            keep_in_line(now, home(now))
        assert str(refused.value) == (
            f"hourly has changed since its state in {home(now).path} was written. "
            "Run with --fresh to start over, or give the changed query a new name."
        )

    def test_so_is_one_that_is_gone(self, catalog: Catalog, tmp_path: Path) -> None:
        now = plan(tmp_path, STREAMS + "  homes: SELECT home FROM high")
        with pytest.raises(InputError) as refused:
            keep_in_line(now, home(now))
        assert str(refused.value) == (
            f"hourly is in the state in {home(now).path}, and no longer in the file. "
            "Run with --fresh to start over, or write what is missing again."
        )


def planned_afresh(folder: Path) -> RunPlan:
    (folder / "tiny.yaml").write_text(STREAMS + FIRST)
    return plan_run(RunRequest(folder / "tiny.yaml"))


@dataclass
class Asked:
    """A client that takes down what is submitted, and refuses some ways to start."""

    known: list[str]
    refused: dict[str, InputError] = field(default_factory=dict)
    submitted: list[tuple[str, str]] = field(default_factory=list)

    def queries(self) -> list[QueryAnswer]:
        nothing = {"queries": [], "fragments": [], "begins": [], "nodes": [], "state": "running"}
        return [QueryAnswer(name=one, **nothing) for one in self.known]

    def submit(
        self,
        name: str,
        kind: str,
        text: str,
        folder: str,
        start: str = "now",
        share: bool = True,
    ) -> SubmittedAnswer:
        assert not share, "what a file asks for is run as it is written"
        if start in self.refused:
            raise self.refused[start]
        self.submitted.append((name, start))
        begin = BeginAnswer(
            fragment="six",
            queries=["six"],
            start="now",
            since="2026-01-05T12:00:00Z",
            untimed=False,
        )
        return SubmittedAnswer(
            name=name, fragments=["six", "readings.2"], unread=[], begins=[begin]
        )


GONE = InputError("readings cannot be read again from its start: a.csv is gone", hint="Do this.")


class TestSubmitting:
    @pytest.fixture
    def grown(self, before: RunPlan, tmp_path: Path) -> RunPlan:
        return plan(tmp_path, STREAMS + FIRST + ADDED)

    def said(self, asked: Asked, plan: RunPlan) -> list[str]:
        return list(submit_parts(cast(Client, asked), run_parts(plan), plan.folder))

    def test_at_first(self, before: RunPlan) -> None:
        asked = Asked([])
        assert self.said(asked, before) == []
        assert asked.submitted == [("tiny", "now")]

    def test_what_was_added_is_read_again_from_the_start(self, grown: RunPlan) -> None:
        asked = Asked(["tiny"])
        assert self.said(asked, grown) == [
            "added since: six, homes; read again from the start: readings"
        ]
        assert asked.submitted == [("tiny.1", "start")]

    def test_once(self, grown: RunPlan) -> None:
        asked = Asked(["tiny", "tiny.1"])
        assert self.said(asked, grown) == []
        assert asked.submitted == []

    def test_where_that_is_not_possible_it_is_said_from_when_they_count(
        self, grown: RunPlan
    ) -> None:
        asked = Asked(["tiny"], {"start": GONE})
        assert self.said(asked, grown) == [
            "six counts after 2026-01-05T12:00:00Z, event time: "
            "readings cannot be read again from its start: a.csv is gone"
        ]
        assert asked.submitted == [("tiny.1", "now")]

    def test_nothing_is_left_to_see(self, grown: RunPlan) -> None:
        ended = InputError("readings has ended: six would see no rows if it began now")
        asked = Asked(["tiny"], {"start": GONE, "now": ended})
        with pytest.raises(InputError) as refused:
            self.said(asked, grown)
        assert str(refused.value) == (f"{GONE.what}; {ended.what}. Run with --fresh to start over.")

    def test_what_is_wrong_whenever_it_begins_is_said_once(self, grown: RunPlan) -> None:
        asked = Asked(["tiny"], {"start": GONE, "now": replace_hint(GONE)})
        with pytest.raises(InputError) as refused:
            self.said(asked, grown)
        assert refused.value is GONE


def replace_hint(error: InputError) -> InputError:
    return InputError(error.what)
