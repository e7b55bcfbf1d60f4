"""What the API says about a system, from what its catalog holds."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import fields, replace

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from control.made_up import submission
from control.toys import TroubledCatalog
from penstock import __version__
from penstock.control.answer_models import FragmentAnswer, SetAsideAnswer
from penstock.control.answers import (
    fragments_answer,
    metrics_of,
    nodes_answer,
    operators_answer,
    queries_answer,
    system_answer,
)
from penstock.control.api_model import plain
from penstock.control.catalog import Catalog
from penstock.control.metrics import FRAGMENT_NUMBERS
from penstock.control.records import NodeRecord, UnitRecord
from penstock.control.system import System, assemble
from penstock.model.beginnings import Beginning
from penstock.model.measurements import FragmentStatus, IntakeSample, NodeSample


def join(catalog: Catalog, name: str, for_s: float = 60.0) -> None:
    until_s = time.time() + for_s
    catalog.join(NodeRecord(name, 2, 1 << 30, f"{name}-1", 12, "0.1.0", until_s), [f"{name}-1"])


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
    return assemble(catalog.submissions())


def test_whoever_reads_what_has_failed_is_told(running: Catalog) -> None:
    running.report("peaks", 1, "running")
    running.report("readings", 1, "failed", "it was not to be")
    notes = {one.name: one.notes for one in fragments_answer(running, system(running))}
    assert notes == {"readings": [], "peaks": ["waits for readings, which has failed"]}


UNREAD = SetAsideAnswer(stream="readings", rows={"malformed": 2}, nothing_read=True, text="why")


class TestNothingCouldBeRead:
    """Neither the input nor what reads it has finished."""

    @pytest.fixture
    def ended(self, running: Catalog) -> Catalog:
        for name in ("readings", "peaks"):
            running.report(name, 1, "finished")
        return running

    def test_its_state_and_the_reason(self, ended: Catalog) -> None:
        found = fragments_answer(ended, system(ended), [UNREAD])
        assert {one.name: (one.state, one.error) for one in found} == {
            "readings": ("unreadable", "why"),
            "peaks": ("unreadable", "nothing could be read of readings"),
        }
        assert queries_answer(ended, system(ended), [UNREAD])[0].state == "unreadable"
        told = system_answer(ended, system(ended), [UNREAD])
        assert {fragment.state for fragment in told.fragments} == {"unreadable"}
        text = metrics_text(ended, [UNREAD])
        assert 'penstock_stream_nothing_read{stream="readings"} 1.0\n' in text

    def test_rows_set_aside_alone_are_no_reason(self, ended: Catalog) -> None:
        some = UNREAD.model_copy(update={"nothing_read": False})
        found = fragments_answer(ended, system(ended), [some])
        assert {one.state for one in found} == {"finished"}


class TestNodes:
    def test_what_it_has_and_runs(self, running: Catalog) -> None:
        running.sample("a", NodeSample(1.0, utilisation=0.25, memory_bytes=700))
        first, second = nodes_answer(running)
        assert plain(first) == {
            "name": "a",
            "state": "up",
            "cores": 2,
            "memory_limit_bytes": 1 << 30,
            "pid": 12,
            "version": "0.1.0",
            "utilisation": 0.25,
            "memory_bytes": 700,
            "heard": {},
            "runs": ["readings"],
            "parent": None,
        }
        assert (second.runs, second.utilisation, second.memory_bytes) == (["peaks"], 0, 0)

    def test_one_that_is_gone_uses_nothing(self, running: Catalog) -> None:
        running.sample("b", NodeSample(1.0, utilisation=0.9, memory_bytes=700))
        join(running, "b", for_s=-1.0)
        gone = nodes_answer(running)[1]
        assert (gone.state, gone.utilisation, gone.memory_bytes) == ("gone", 0, 0)

    def test_one_that_has_never_joined_is_starting(self, running: Catalog) -> None:
        running.declare(NodeRecord("c", 1, 1))
        assert nodes_answer(running)[2].state == "starting"


class TestFragments:
    def test_where_they_are_and_how_they_do(self, running: Catalog) -> None:
        peaks, readings = fragments_answer(running, system(running))
        assert plain(peaks) == {
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
        assert (readings.kind, readings.node, readings.state) == ("intake", "a", "running")

    def test_what_was_measured_last_stays_with_one_that_has_finished(
        self, running: Catalog
    ) -> None:
        last = FragmentStatus("peaks", rows_out=7)
        running.report("peaks", 1, "finished", measured=last)
        assert fragments_answer(running, system(running))[0].measured == last

    def test_what_a_former_owner_said_is_not_the_state(self, running: Catalog) -> None:
        running.report("peaks", 1, "running")
        assert fragments_answer(running, system(running))[0].state == "running"
        running.assign(running.units()[0], "a")
        assert fragments_answer(running, system(running))[0].state == "starting"

    def test_one_whose_node_is_not_up_waits_whatever_was_said_last(self, running: Catalog) -> None:
        running.report("peaks", 1, "running")
        join(running, "b", for_s=-1.0)
        peaks = fragments_answer(running, system(running))[0]
        assert (peaks.state, peaks.notes) == (
            "waiting",
            ["waits for node b, which is not up"],
        )

    def test_one_that_is_away_says_when_it_goes_back(self, running: Catalog) -> None:
        running.assign(running.units()[0], "a", lost_s=1.0, belongs="b")
        running.report("peaks", 2, "running")
        peaks = fragments_answer(running, system(running))[0]
        assert (peaks.node, peaks.belongs) == ("a", "b")
        assert peaks.notes == ["runs on a until node b has been up for 30 s"]

    def test_one_that_comes_later_than_it_may(self, catalog: TroubledCatalog) -> None:
        catalog.add(
            {**vars(submission()), "max_latency_us": 3_000_000},
            [UnitRecord("peaks", "fragment", 1)],
        )
        join(catalog, "a")
        catalog.assign(catalog.units()[0], "a")
        catalog.report("peaks", 1, "running")
        measured = FragmentStatus("peaks", latency_p50_s=1.0, waiting_s=142.0, batch_ms=142_000.0)
        catalog.sample("a", NodeSample(1.0, utilisation=0.97, fragments={"peaks": measured}))
        (peaks,) = fragments_answer(catalog, system(catalog))
        assert (peaks.late, peaks.limit_s) == (True, 3.0)
        assert peaks.notes == [
            "results take 142 s instead of 3 s: node a is overloaded, 97% of its cores in use"
        ]
        text = metrics_text(catalog)
        assert 'penstock_fragment_late{fragment="peaks",node="a"} 1.0\n' in text
        assert 'penstock_query_latency_ratio{query="peaks"} 47.3' in text

    def test_measurements_are_those_of_the_present_node(self, running: Catalog) -> None:
        """One that has died has left its last ones behind."""
        five, seven = FragmentStatus("peaks", rows_in=5), FragmentStatus("peaks", rows_in=7)
        running.sample("a", NodeSample(1.0, fragments={"peaks": five}))
        running.sample("b", NodeSample(2.0, fragments={"peaks": seven}))
        assert fragments_answer(running, system(running))[0].measured == seven
        running.assign(running.units()[0], "a")
        assert fragments_answer(running, system(running))[0].measured == five
        running.sample("a", NodeSample(3.0))
        assert plain(fragments_answer(running, system(running))[0])["measured"] == {}

    def test_of_an_intake_its_cost_is_known(self, running: Catalog) -> None:
        running.sample("a", NodeSample(1.0, intakes={"readings": IntakeSample(2.5)}))
        readings = fragments_answer(running, system(running))[1]
        assert plain(readings)["measured"] == {"cpu_ms": 2.5}
        again = FragmentAnswer.model_validate_json(readings.model_dump_json())
        assert again == readings
        text = metrics_text(running)
        assert 'penstock_fragment_cpu_seconds_total{fragment="readings",node="a"} 0.0025\n' in text


class TestQueries:
    def test_a_submission_and_its_parts(self, running: Catalog) -> None:
        assert plain(queries_answer(running, system(running))) == [
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
                "projected_s": None,
                "measured_s": None,
                "kept_for": [],
                "shares": [],
            }
        ]

    def test_since_when_they_count(self, running: Catalog) -> None:
        whole = system(running)
        peaks = whole.units["peaks"]
        assert peaks.fragment is not None
        beginning = Beginning("now", 1_500_000)
        late = replace(peaks, fragment=replace(peaks.fragment, beginning=beginning))
        grown = replace(whole, units={**whole.units, "peaks": late})
        (begin,) = queries_answer(running, grown)[0].begins
        assert (begin.start, begin.since) == ("now", "1970-01-01T00:00:01.500000Z")
        shown = {one.name: one.since for one in fragments_answer(running, grown)}
        assert shown == {"peaks": begin.since, "readings": None}

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
        assert queries_answer(running, system(running))[0].state == summary

    def test_what_a_former_owner_said_does_not(self, running: Catalog) -> None:
        running.report("peaks", 1, "failed")
        running.assign(running.units()[0], "a")
        assert queries_answer(running, system(running))[0].state == "starting"

    def test_one_that_has_come_since_is_left_to_the_next_answer(self, running: Catalog) -> None:
        before = system(running)
        running.add(vars(submission("q", "SELECT home FROM peaks", 2)), [])
        assert [one.name for one in queries_answer(running, before)] == ["ami"]


def test_everything_at_once_is_json(running: Catalog) -> None:
    row = {"unit": "peaks", "source": "a", "target": "b", "state": "preparing", "created_s": 1.0}
    running.add_moves([{**row, "numbers": {"gain": 2}}] * 12)
    told = plain(system_answer(running, system(running)))
    assert told["version"] == __version__
    assert [len(told[part]) for part in ("nodes", "queries", "fragments", "moves")] == [2, 1, 2, 10]
    assert told["moves"][-1]["numbers"] == {"gain": 2}
    assert json.loads(json.dumps(told)) == told


class TestOperators:
    def test_each_has_its_part_of_the_fragment(self, running: Catalog) -> None:
        measured = FragmentStatus("peaks", 1_000, rows_in_per_s=50.0, selectivity=0.2, cpu_ms=10.0)
        running.sample("b", NodeSample(1.0, fragments={"peaks": measured}))
        operators = operators_answer(running, system(running))
        found = {operator.kind: plain(operator) for operator in operators}
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
        label = f'{{fragment="peaks",operator="{found["filter"]["operator"]}"}}'
        text = metrics_text(running)
        assert f"penstock_operator_selectivity_ratio{label} 0.2\n" in text

    def test_before_anything_is_measured_there_are_none(self, running: Catalog) -> None:
        assert operators_answer(running, system(running)) == []


class TestMetrics:
    def test_they_are_written_as_prometheus_reads_them(self, running: Catalog) -> None:
        running.sample("a", NodeSample(1.0, utilisation=0.25, memory_bytes=700))
        families = {family.name: family for family in parsed(metrics_text(running))}
        assert all(family.documentation for family in families.values())
        assert {family.type for family in families.values()} == {"gauge"}
        assert samples(families["penstock_node_memory_bytes"]) == {("a",): 700, ("b",): 0}
        assert samples(families["penstock_node_up"]) == {("a",): 1, ("b",): 1}
        assert samples(families["penstock_node_utilisation_ratio"]) == {("a",): 0.25, ("b",): 0}
        for name in ("epoch", "restarts"):
            found = samples(families[f"penstock_fragment_{name}"])
            assert found == dict.fromkeys(
                [("peaks", "b"), ("readings", "a")], 1 if name == "epoch" else 0
            )
        assert len(families) == 5, "nothing is said of what was not measured"

    def test_all_numbers_of_a_fragment(self, running: Catalog) -> None:
        others = {"fragment", "is_finished", "group_rows"}
        numbers = {field.name: 1 for field in fields(FragmentStatus) if field.name not in others}
        measured = FragmentStatus("peaks", **numbers)  # type: ignore[arg-type]
        running.sample("b", NodeSample(1.0, fragments={"peaks": measured}))
        assert set(FRAGMENT_NUMBERS) == set(numbers)
        told = {family.name: family.samples[0].value for family in parsed(metrics_text(running))}
        for exported in FRAGMENT_NUMBERS.values():
            assert told[f"penstock_fragment_{exported.name}"] == exported.scale
        assert told["penstock_fragment_busy_seconds"] == 0.001
        assert told["penstock_fragment_row_cost_seconds"] == 1e-6
        assert told["penstock_fragment_waiting_seconds"] == 1

    def test_what_only_grows_is_a_counter(self, running: Catalog) -> None:
        measured = FragmentStatus("peaks", rows_in=7, backlog_rows=3)
        running.sample("b", NodeSample(1.0, fragments={"peaks": measured}))
        text = metrics_text(running, [UNREAD.model_copy(update={"rows": {"late": 3}})])
        kinds = {family.name: family.type for family in parsed(text)}
        assert kinds["penstock_fragment_rows_in"] == "counter"
        assert kinds["penstock_stream_set_aside_rows"] == "counter"
        assert kinds["penstock_fragment_backlog_rows"] == "gauge"

    def test_how_far_a_query_is_behind(self, running: Catalog) -> None:
        at_ms = 1_000 * (time.time() - 60)
        measured = FragmentStatus("peaks", watermark_ms=int(at_ms))
        running.sample("b", NodeSample(1.0, fragments={"peaks": measured}))
        families = {family.name: family for family in parsed(metrics_text(running))}
        gap_s = samples(families["penstock_query_watermark_gap_seconds"])[("peaks",)]
        assert 60 <= gap_s < 70

    def test_what_could_not_be_used_is_counted(self, running: Catalog) -> None:
        aside = UNREAD.model_copy(update={"rows": {"late": 3, "skipped": 1}})
        text = metrics_text(running, [aside])
        assert 'penstock_stream_set_aside_rows_total{kind="late",stream="readings"} 3.0\n' in text
        assert (
            'penstock_stream_set_aside_rows_total{kind="skipped",stream="readings"} 1.0\n' in text
        )

    def test_names_may_hold_anything(self, running: Catalog) -> None:
        odd = UNREAD.model_copy(update={"stream": 'a"b\\c\nd'})
        families = {family.name: family for family in parsed(metrics_text(running, [odd]))}
        assert [*samples(families["penstock_stream_nothing_read"])] == [('a"b\\c\nd',)]


def metrics_text(catalog: Catalog, set_aside: Sequence[SetAsideAnswer] = ()) -> str:
    return metrics_of(catalog, system(catalog), set_aside).text()


def parsed(text: str) -> list[Metric]:
    """The families, by the reader of another program than ours."""
    return list(text_string_to_metric_families(text))


def samples(family: Metric) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}
