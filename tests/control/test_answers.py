"""What the API says about a system, from what its catalog holds."""

from __future__ import annotations

import json
import re
import time

import pytest

from control.made_up import submission
from control.toys import TroubledCatalog
from penstock import __version__
from penstock.control.answers import (
    fragments_answer,
    metrics_text,
    nodes_answer,
    operators_answer,
    queries_answer,
    system_answer,
)
from penstock.control.catalog import Catalog
from penstock.control.records import NodeRecord, UnitRecord
from penstock.control.system import System, assembled


def join(catalog: Catalog, name: str, for_s: float = 60.0) -> None:
    until_s = time.time() + for_s
    catalog.join(NodeRecord(name, 2, 1 << 30, f"{name}-1", 12, "0.1.0", until_s))


@pytest.fixture
def running(catalog: TroubledCatalog) -> Catalog:
    """Node a runs readings, node b is to run peaks."""
    for name in "ab":
        join(catalog, name)
    units = [UnitRecord("readings", "intake", 1), UnitRecord("peaks", "fragment", 1)]
    catalog.add(vars(submission()), units)
    for unit, node in zip(catalog.units(), "ba", strict=True):
        catalog.assign(unit, node)
    catalog.report("readings", 1, "running")
    return catalog


def system(catalog: Catalog) -> System:
    return assembled(catalog.submissions())


UNREAD = {"stream": "readings", "rows": {"malformed": 2}, "nothing_read": True, "text": "why"}


class TestNothingCouldBeRead:
    """Neither the input nor what reads it has finished."""

    @pytest.fixture
    def ended(self, running: Catalog) -> Catalog:
        for name in ("readings", "peaks"):
            running.report(name, 1, "finished")
        return running

    def test_its_state_and_the_reason(self, ended: Catalog) -> None:
        found = fragments_answer(ended, system(ended), [UNREAD])
        assert {one["name"]: (one["state"], one["error"]) for one in found} == {
            "readings": ("unreadable", "why"),
            "peaks": ("unreadable", "nothing could be read of readings"),
        }
        assert queries_answer(ended, system(ended), [UNREAD])[0]["state"] == "unreadable"
        told = system_answer(ended, system(ended), [UNREAD])
        assert {one["state"] for one in told["fragments"]} == {"unreadable"}
        text = metrics_text(ended, system(ended), [UNREAD])
        assert 'penstock_stream_nothing_read{stream="readings"} 1\n' in text

    def test_rows_set_aside_alone_are_no_reason(self, ended: Catalog) -> None:
        some = UNREAD | {"nothing_read": False}
        found = fragments_answer(ended, system(ended), [some])
        assert {one["state"] for one in found} == {"finished"}


class TestNodes:
    def test_what_it_has_and_runs(self, running: Catalog) -> None:
        running.sample("a", 1.0, {"utilisation": 0.25, "memory_bytes": 700})
        first, second = nodes_answer(running)
        assert first == {
            "name": "a",
            "state": "up",
            "cores": 2,
            "memory_limit_bytes": 1 << 30,
            "pid": 12,
            "version": "0.1.0",
            "utilisation": 0.25,
            "memory_bytes": 700,
            "runs": ["readings"],
        }
        assert (second["runs"], second["utilisation"], second["memory_bytes"]) == (["peaks"], 0, 0)

    def test_one_that_is_gone_uses_nothing(self, running: Catalog) -> None:
        running.sample("b", 1.0, {"utilisation": 0.9, "memory_bytes": 700})
        join(running, "b", for_s=-1.0)
        gone = nodes_answer(running)[1]
        assert (gone["state"], gone["utilisation"], gone["memory_bytes"]) == ("gone", 0, 0)

    def test_one_that_has_never_joined_is_starting(self, running: Catalog) -> None:
        running.declare(NodeRecord("c", 1, 1))
        assert nodes_answer(running)[2]["state"] == "starting"


class TestFragments:
    def test_where_they_are_and_how_they_do(self, running: Catalog) -> None:
        peaks, readings = fragments_answer(running, system(running))
        assert peaks == {
            "name": "peaks",
            "kind": "fragment",
            "node": "b",
            "belongs": "b",
            "state": "starting",
            "notes": [],
            "limit_s": None,
            "late": False,
            "epoch": 1,
            "error": "",
            "restarts": 0,
            "restarts_at_most": 3,
            "since": None,
            "untimed": False,
            "measured": {},
        }
        assert (readings["kind"], readings["node"], readings["state"]) == ("intake", "a", "running")

    def test_what_was_measured_last_stays_with_one_that_has_finished(
        self, running: Catalog
    ) -> None:
        running.report("peaks", 1, "finished", measured={"rows_out": 7})
        assert fragments_answer(running, system(running))[0]["measured"] == {"rows_out": 7}

    def test_what_a_former_owner_said_is_not_the_state(self, running: Catalog) -> None:
        running.report("peaks", 1, "running")
        assert fragments_answer(running, system(running))[0]["state"] == "running"
        running.assign(running.units()[0], "a")
        assert fragments_answer(running, system(running))[0]["state"] == "starting"

    def test_one_whose_node_is_not_up_waits_whatever_was_said_last(self, running: Catalog) -> None:
        running.report("peaks", 1, "running")
        join(running, "b", for_s=-1.0)
        peaks = fragments_answer(running, system(running))[0]
        assert (peaks["state"], peaks["notes"]) == (
            "waiting",
            ["waits for node b, which is not up"],
        )

    def test_one_that_is_away_says_when_it_goes_back(self, running: Catalog) -> None:
        running.assign(running.units()[0], "a", lost_s=1.0, belongs="b")
        running.report("peaks", 2, "running")
        peaks = fragments_answer(running, system(running))[0]
        assert (peaks["node"], peaks["belongs"]) == ("a", "b")
        assert peaks["notes"] == ["runs on a until node b has been up for 30 s"]

    def test_one_that_comes_later_than_it_may(self, catalog: TroubledCatalog) -> None:
        catalog.add(
            {**vars(submission()), "max_latency_us": 3_000_000},
            [UnitRecord("peaks", "fragment", 1)],
        )
        join(catalog, "a")
        catalog.assign(catalog.units()[0], "a")
        catalog.report("peaks", 1, "running")
        measured = {"latency_p50_s": 1.0, "waiting_s": 142.0, "batch_ms": 142_000.0}
        numbers = {"utilisation": 0.97, "fragments": {"peaks": measured}}
        catalog.sample("a", 1.0, numbers)
        (peaks,) = fragments_answer(catalog, system(catalog))
        assert (peaks["late"], peaks["limit_s"]) == (True, 3.0)
        assert peaks["notes"] == [
            "results take 142 s instead of 3 s: node a is overloaded, 97% of its cores in use"
        ]
        assert 'penstock_fragment_late{fragment="peaks",node="a"} 1\n' in metrics_text(
            catalog, system(catalog)
        )

    def test_measurements_are_those_of_the_present_node(self, running: Catalog) -> None:
        """One that has died has left its last ones behind."""
        running.sample("a", 1.0, {"fragments": {"peaks": {"rows_in": 5}}})
        running.sample("b", 2.0, {"fragments": {"peaks": {"rows_in": 7}}})
        assert fragments_answer(running, system(running))[0]["measured"] == {"rows_in": 7}
        running.assign(running.units()[0], "a")
        assert fragments_answer(running, system(running))[0]["measured"] == {"rows_in": 5}
        running.sample("a", 3.0, {})
        assert fragments_answer(running, system(running))[0]["measured"] == {}


class TestQueries:
    def test_a_submission_and_its_parts(self, running: Catalog) -> None:
        assert queries_answer(running, system(running)) == [
            {
                "name": "ami",
                "queries": ["peaks"],
                "fragments": ["readings", "peaks"],
                "begins": [
                    {
                        "fragment": "peaks",
                        "queries": ["peaks"],
                        "from": "start",
                        "since": None,
                        "untimed": False,
                    }
                ],
                "nodes": ["a", "b"],
                "state": "starting",
            }
        ]

    @pytest.mark.parametrize(
        ("states", "summary"),
        [
            (("running", "running"), "running"),
            (("running", "failed"), "failed"),
            (("running", "held back"), "held back"),
            (("finished", "running"), "running"),
            (("finished", "finished"), "finished"),
            (("held back", "failed"), "failed"),
        ],
    )
    def test_the_worst_state_counts(
        self, running: Catalog, states: tuple[str, str], summary: str
    ) -> None:
        for name, state in zip(("readings", "peaks"), states, strict=True):
            running.report(name, 1, state)
        assert queries_answer(running, system(running))[0]["state"] == summary

    def test_what_a_former_owner_said_does_not(self, running: Catalog) -> None:
        running.report("peaks", 1, "failed")
        running.assign(running.units()[0], "a")
        assert queries_answer(running, system(running))[0]["state"] == "starting"

    def test_one_that_has_come_since_is_left_to_the_next_answer(self, running: Catalog) -> None:
        before = system(running)
        running.add(vars(submission("q", "SELECT home FROM peaks", 2)), [])
        assert [one["name"] for one in queries_answer(running, before)] == ["ami"]


def test_everything_at_once_is_json(running: Catalog) -> None:
    row = {"unit": "peaks", "source": "a", "target": "b", "state": "preparing", "created_s": 1.0}
    running.add_moves([{**row, "numbers": {"gain": 2}}] * 12)
    told = system_answer(running, system(running))
    assert told["version"] == __version__
    assert [len(told[part]) for part in ("nodes", "queries", "fragments", "moves")] == [2, 1, 2, 10]
    assert told["moves"][-1]["numbers"] == {"gain": 2}
    assert json.loads(json.dumps(told)) == told


class TestOperators:
    def test_each_has_its_part_of_the_fragment(self, running: Catalog) -> None:
        measured = {"rows_in": 1_000, "rows_in_per_s": 50.0, "selectivity": 0.2, "cpu_ms": 10.0}
        running.sample("b", 1.0, {"fragments": {"peaks": measured}})
        found = {one["kind"]: one for one in operators_answer(running, system(running))}
        assert found["filter"] == {
            "operator": found["filter"]["operator"],
            "kind": "filter",
            "fragment": "peaks",
            "node": "b",
            "rows_in": 1_000,
            "rows_out": 200,
            "rows_in_per_s": 50.0,
            "rows_out_per_s": 10.0,
            "selectivity": 0.2,
            "cost_us": found["filter"]["cost_us"],
        }
        label = f'{{operator="{found["filter"]["operator"]}",fragment="peaks"}}'
        text = metrics_text(running, system(running))
        assert f"penstock_operator_selectivity{label} 0.2\n" in text

    def test_before_anything_is_measured_there_are_none(self, running: Catalog) -> None:
        assert operators_answer(running, system(running)) == []


class TestMetrics:
    def test_they_are_written_as_prometheus_reads_them(self, running: Catalog) -> None:
        measured = {"rows_in": 7, "latency_p50_s": 0.5, "is_finished": True, "watermark_ms": None}
        running.sample("a", 1.0, {"utilisation": 0.25, "memory_bytes": 700})
        running.sample("b", 1.0, {"fragments": {"peaks": {**measured, "fragment": "peaks"}}})
        assert metrics_text(running, system(running)) == (
            'penstock_fragment_epoch{fragment="peaks",node="b"} 1\n'
            'penstock_fragment_epoch{fragment="readings",node="a"} 1\n'
            'penstock_fragment_latency_p50_s{fragment="peaks",node="b"} 0.5\n'
            'penstock_fragment_rows_in{fragment="peaks",node="b"} 7\n'
            'penstock_node_memory_bytes{node="a"} 700\n'
            'penstock_node_memory_bytes{node="b"} 0\n'
            'penstock_node_up{node="a"} 1\n'
            'penstock_node_up{node="b"} 1\n'
            'penstock_node_utilisation_ratio{node="a"} 0.25\n'
            'penstock_node_utilisation_ratio{node="b"} 0.0\n'
        )

    def test_what_could_not_be_used_is_counted(self, running: Catalog) -> None:
        aside = [UNREAD | {"rows": {"late": 3, "skipped": 1}}]
        text = metrics_text(running, system(running), aside)
        assert 'penstock_stream_set_aside_rows{stream="readings",kind="late"} 3\n' in text
        assert 'penstock_stream_set_aside_rows{stream="readings",kind="skipped"} 1\n' in text

    def test_every_line_is_a_sample_and_every_family_stands_together(
        self, running: Catalog
    ) -> None:
        for node in "ab":
            running.sample(node, 1.0, {"fragments": {"peaks": {"rows": 1, "rows_in": 1e-9}}})
        lines = metrics_text(running, system(running)).splitlines()
        form = re.compile(r'([a-z0-9_]+)\{[a-z]+="\w*"(,[a-z]+="\w*")*\} [-+0-9.e]+')
        matches = [form.fullmatch(line) for line in lines]
        assert all(matches)
        families = [match.group(1) for match in matches if match]
        assert len([*dict.fromkeys(families)]) == sum(
            here != before for here, before in zip(families, ["", *families], strict=False)
        )
