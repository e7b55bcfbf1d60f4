"""Submissions that share, that do not fit, and that are only looked at."""

from __future__ import annotations

import time

import pytest

from control.controller.facts import readers, refused, run, story, the
from control.toys import TroubledCatalog
from penstock.control.answer_models import SubmitRequest
from penstock.control.controller import Controller
from penstock.control.sharing_answers import admission_answer
from penstock.model.measurements import FragmentStatus, NodeSample

STREAMS = """
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
"""
SUMS = (
    "SELECT home, window.start AS since, sum(kwh) AS kwh FROM readings "
    "GROUP BY home, window(ts, '10 minutes') HAVING sum(kwh) > 9"
)
SAME = SUMS.replace("sum(kwh) AS kwh", "sum(kwh) AS total")


@pytest.fixture
def busy(controller: Controller, catalog: TroubledCatalog) -> Controller:
    """A query on a node that has little left, measured for a while."""
    controller.submit("base", "yaml", STREAMS, ".")
    controller.submit("sums", "sql", SUMS, ".", 5_000_000)
    for unit in catalog.units():
        run(catalog, unit, "a")
    status = FragmentStatus(
        "sums",
        rows_in=50_000,
        rows_out=500,
        rows_in_per_s=1_000.0,
        batches=50,
        batch_ms=400.0,
        selectivity=0.01,
        latency_p99_s=4.0,
        cost_us=300.0,
    )
    for at in range(6):
        at_s = time.time() + at
        used = NodeSample(at_s, 0.9, 0.9, fragments={"sums": status})
        catalog.sample("a", used)
        catalog.sample("b", NodeSample(at_s, 0.1, 0.1))
    return controller


def asking(name: str = "same", query: str = SAME, **told: object) -> SubmitRequest:
    kind = told.pop("kind", "sql")
    return SubmitRequest(name=name, kind=kind, text=query, folder=".", **told)  # type: ignore[arg-type]


def test_what_runs_is_shared_and_recorded(busy: Controller, catalog: TroubledCatalog) -> None:
    busy.take_in(asking())
    (submission,) = [one for one in catalog.submissions() if one.name == "same"]
    (read,) = submission.sharing.reads
    assert (read.source, read.maker) == ("sums", "sums")
    assert submission.sharing.projected_s is not None and submission.sharing.projected_s > 4
    assert readers(busy, "sums") == ["same"]
    assert busy.system().units["same"].reads == ("sums",)
    graph = busy.graph("same")
    assert [one.fragment for one in graph.own] == ["same"]
    assert [other.fragment for other in graph.others] == ["readings", "sums"]
    assert graph.sharing.shared[0].used_by == ["sums"]


def test_where_it_comes_too_late_it_is_computed_apart(busy: Controller) -> None:
    _, proposal = busy.take_in(asking(max_latency_us=3_000_000))
    assert not proposal.asked.sharing.reads
    assert proposal.asked.sharing.notes == ("what runs already comes too late for it",)
    assert proposal.impact.fits


def test_where_nothing_fits_what_comes_sooner_is_told(busy: Controller) -> None:
    """What is read takes 4 s already; alone it would take less, though still too long."""
    text = refused(lambda: busy.take_in(asking(max_latency_us=1_000)))
    assert text == refused(lambda: busy.take_in(asking(max_latency_us=1_000, share=False)))


def test_what_would_break_limits_is_refused(busy: Controller, catalog: TroubledCatalog) -> None:
    before = (catalog.units(), catalog.submissions())
    text = refused(lambda: busy.take_in(asking(max_latency_us=1_000, share=False)))
    assert text.startswith("same does not fit: its results would take ")
    assert "What would help: --max-latency " in text and "--force takes it in" in text
    assert (catalog.units(), catalog.submissions()) == before
    assert story(catalog)[-1].startswith("refused same: same does not fit")


def test_with_force_it_is_taken_in(busy: Controller, catalog: TroubledCatalog) -> None:
    units, proposal = busy.take_in(asking(max_latency_us=1_000, share=False, force=True))
    assert [unit.name for unit in units] == ["same"]
    told = admission_answer(proposal)
    assert not told.fits and told.why and told.help
    assert the(catalog, "same").name == "same"


def test_a_dry_run_changes_nothing(busy: Controller, catalog: TroubledCatalog) -> None:
    before = (catalog.units(), catalog.submissions(), catalog.plans())
    _, proposal = busy.take_in(asking(max_latency_us=1_000, dry_run=True))
    assert not admission_answer(proposal).fits
    _, proposal = busy.take_in(asking(dry_run=True))
    assert admission_answer(proposal).fits
    assert [one.source for one in busy.sharing_of(proposal).shared] == ["sums"]
    assert (catalog.units(), catalog.submissions(), catalog.plans()) == before


def test_a_dropped_one_is_kept_for_who_shares_it(
    busy: Controller, catalog: TroubledCatalog
) -> None:
    busy.take_in(asking())
    run(catalog, the(catalog, "same"), "a")
    busy.drop("sums", patience_s=0.2)
    assert story(catalog)[-1] == "drop sums: dropped; what same shares of it is kept"
    assert refused(lambda: busy.drop("sums")).startswith("nothing called sums is running.")
    assert refused(lambda: busy.take_in(asking("sums", SUMS))) == (
        "sums was dropped, and what others share of it still runs for same. Give it another name."
    )
    for unit in catalog.units():
        catalog.release(unit.name, unit.epoch)
    busy.drop("same", patience_s=5)
    assert [submission.name for submission in catalog.submissions()] == ["base"]
    assert [one.name for one in catalog.units()] == ["readings"]


def noted(controller: Controller, **told: object) -> tuple[str, ...]:
    """Why nothing is shared of what is the same."""
    _, proposal = controller.take_in(asking(dry_run=True, **told))
    assert not proposal.asked.sharing.reads
    return proposal.asked.sharing.notes


def test_what_is_being_dropped_is_not_shared(busy: Controller, catalog: TroubledCatalog) -> None:
    assert refused(lambda: busy.drop("sums", patience_s=0.1)).startswith("sums did not stop within")
    assert noted(busy) == ("same is the same as sums, but sums is being dropped",)
    by_name = "SELECT home, since FROM sums WHERE kwh > 10"
    before = catalog.units()
    assert refused(lambda: busy.take_in(asking("reader", by_name))) == (
        "sums is being dropped. Wait until it is gone, and read something else."
    )
    assert catalog.units() == before


def test_what_has_failed_is_not_shared(busy: Controller, catalog: TroubledCatalog) -> None:
    catalog.report("sums", the(catalog, "sums").epoch, "failed", "it was not to be")
    assert noted(busy) == ("same is the same as sums, but sums has failed",)
    coarse = SAME.replace("10 minutes", "1 hour")
    assert noted(busy, query=coarse) == (
        "same_aggregate could be made of slices of sums, but sums has failed",
    )


def test_what_has_ended_or_not_begun_is_not_shared(
    busy: Controller, catalog: TroubledCatalog
) -> None:
    catalog.report("sums", the(catalog, "sums").epoch, "finished")
    assert noted(busy) == ("same is the same as sums, but sums has come to its end",)
    busy.submit("other", "sql", SUMS.replace("10 minutes", "7 minutes"), ".")
    wanted = SAME.replace("10 minutes", "7 minutes")
    assert noted(busy, query=wanted) == ("same is the same as other, but other does not run yet",)


def test_what_is_wrong_with_a_request_is_said_before_anything_is_done(
    busy: Controller, catalog: TroubledCatalog
) -> None:
    before = (catalog.units(), catalog.submissions(), catalog.plans())
    unknown = SAME.replace("readings", "reading")
    text = refused(lambda: busy.take_in(asking(query=unknown)))
    assert "no stream or table reading; there are readings, sums. Did you mean readings?" in text
    circle = "queries: {a: SELECT home FROM b, b: SELECT home FROM a}"
    text = refused(lambda: busy.take_in(asking("two", circle, kind="yaml")))
    assert "these read each other in a circle: a -> b -> a." in text
    assert (catalog.units(), catalog.submissions(), catalog.plans()) == before


def test_what_was_taken_in_just_now_counts_before_it_shows(
    busy: Controller, catalog: TroubledCatalog
) -> None:
    def load(name: str) -> float:
        _, proposal = busy.take_in(asking(name, share=False, dry_run=True))
        (new_work,) = proposal.work
        assert new_work.cores is not None
        return proposal.impact.loads[new_work.node] - new_work.cores

    before = load("first")
    _, proposal = busy.take_in(asking("first", share=False))
    (new_work,) = proposal.work
    assert new_work.cores
    assert load("second") == pytest.approx(before), "it does not run yet"
    # Some of what was measured there was measured before.
    run(catalog, the(catalog, "first"), new_work.node)
    assert before + new_work.cores > load("second") > before + 0.01 * new_work.cores
