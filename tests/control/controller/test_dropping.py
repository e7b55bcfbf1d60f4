"""Dropping: nothing is left, nothing else is touched, and nobody waits for ever."""

from __future__ import annotations

import threading

import pytest

from control.controller.facts import files, readers, refused, run, story, the
from control.made_up import AMI
from control.toys import TroubledCatalog, once, raising
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.device.segments import Segment
from penstock.errors import RunError, UnreachableError
from penstock.model.moves import Move
from waiting import until


@pytest.fixture
def stopped(ami: Controller, catalog: TroubledCatalog) -> Controller:
    """Everything that runs has stopped, as it would when it is dropped."""
    for name in ("peaks", "readings"):
        catalog.release(name, 1)
    return ami


def test_refusals(stopped: Controller, catalog: TroubledCatalog) -> None:
    stopped.submit("q", "sql", "SELECT home FROM peaks", ".")
    before = (catalog.units(), catalog.submissions())
    for name, text in (
        ("amy", "nothing called amy is running. There are ami, q. Did you mean ami?"),
        ("../x", "nothing called ../x is running. There are ami, q."),
        ("peaks", "peaks is part of ami. Drop ami as a whole."),
        ("ami", "ami is read by q. Drop those that read it first."),
    ):
        assert refused(lambda name=name: stopped.drop(name)) == text  # type: ignore[misc]
    assert (catalog.units(), catalog.submissions()) == before


def test_nothing_at_all(controller: Controller) -> None:
    assert refused(lambda: controller.drop("ami")) == (
        "nothing called ami is running. There are none."
    )


def test_nothing_is_left(stopped: Controller, catalog: TroubledCatalog, home: Home) -> None:
    for part in ("fragments/peaks", "streams/readings", "channels/peaks", "channels/other"):
        (home.state / part / "deep").mkdir(parents=True)
    stopped.move([Move("peaks", "b")])
    stopped.drop("ami", patience_s=5)
    assert (catalog.units(), catalog.submissions(), catalog.moves()) == ((), (), ())
    assert [file for file in files(home) if "ami" in file or "s/peaks" in file] == []
    assert files(home) == [
        "channels",
        "channels/other",
        "channels/other/deep",
        "fragments",
        "streams",
    ]
    assert story(catalog)[-1] == "drop ami: dropped"
    assert stopped.submit("ami", "yaml", AMI, ".")


PHONES = """
broadcast: {organisation: indexed, bandwidth: 125000}
devices: {anna: {speed: 1.0e9, processing_power: 0.5, receiving_power: 1.0, queries: [high]}}
streams:
  loads: {source: {generate: meters, homes: 40, days: 1}, lateness: 2min}
queries:
  high: SELECT ts, home, kwh FROM loads WHERE kwh > 1
"""


@pytest.fixture
def phones(controller: Controller, catalog: TroubledCatalog) -> Controller:
    """A deployment whose query for devices has been cut anew."""
    controller.submit("phones", "yaml", PHONES, ".")
    controller.submit("phones.high.2", "segment", Segment("phones", "high", 1).to_text(), ".")
    return controller


def test_cuts_made_anew_go_with_their_deployment(
    phones: Controller, catalog: TroubledCatalog
) -> None:
    phones.submit("other", "sql", "SELECT home FROM loads", ".")
    assert refused(lambda: phones.drop("phones")) == (
        "phones is read by other. Drop those that read it first."
    )
    assert [known.name for known in catalog.submissions()] == ["phones", "phones.high.2", "other"]
    phones.drop("other", patience_s=5)
    phones.drop("phones", patience_s=5)
    assert (catalog.units(), catalog.submissions()) == ((), ())


def test_cuts_made_anew_do_not_keep_their_deployment_from_being_replaced(
    phones: Controller, catalog: TroubledCatalog
) -> None:
    phones.submit("phones", "yaml", PHONES.replace("kwh > 1", "kwh > 2"), ".", replace=True)
    assert [known.name for known in catalog.submissions()] == ["phones"]


def test_what_it_read_of_others_is_freed(
    stopped: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    stopped.submit("q", "sql", "SELECT home FROM peaks", ".")
    stopped.submit("r", "sql", "SELECT home FROM peaks", ".")
    stopped.drop("q", patience_s=5)
    assert readers(stopped, "peaks") == ["r"]
    assert [unit.name for unit in catalog.units()] == ["peaks", "r", "readings"]


def test_it_waits_for_the_units_to_stop(
    ami: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    (home.state / "fragments" / "peaks").mkdir(parents=True)
    dropping = threading.Thread(target=ami.drop, args=("ami",))
    dropping.start()
    until(lambda: all(unit.is_dropped for unit in catalog.units()))
    catalog.release("peaks", 1)
    assert (home.state / "fragments" / "peaks").exists()
    catalog.release("readings", 1)
    dropping.join(20)
    assert catalog.units() == ()


def test_but_not_for_ever(ami: Controller, catalog: TroubledCatalog) -> None:
    catalog.release("peaks", 1)
    with pytest.raises(RunError) as error:
        ami.drop("ami", patience_s=0)
    assert str(error.value) == (
        "readings did not stop within 0 s. "
        "Ask again; the logs of their nodes say what they are doing."
    )
    catalog.release("readings", 1)
    ami.drop("ami", patience_s=5)
    assert catalog.submissions() == ()


def test_nor_for_nodes_that_are_dead(controller: Controller, catalog: TroubledCatalog) -> None:
    controller.submit("ami", "yaml", AMI, ".")
    run(catalog, the(catalog, "peaks"), "z")
    controller.drop("ami", patience_s=0)
    assert catalog.submissions() == ()


def test_what_is_being_dropped_is_given_to_nobody(
    controller: Controller, catalog: TroubledCatalog
) -> None:
    controller.submit("ami", "yaml", AMI, ".")
    seen = the(catalog, "peaks")
    catalog.drop(1)
    assert not catalog.assign(seen, "a")
    controller.tick()
    assert the(catalog, "peaks").node is None


def test_one_that_was_interrupted_can_be_repeated(
    stopped: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    """And leaves nothing behind that the next of that name would take for its own."""
    (home.state / "fragments" / "peaks").mkdir(parents=True)
    catalog.before["remove"] = once(raising(UnreachableError("the catalog is away")))
    assert refused(lambda: stopped.drop("ami", patience_s=5)) == "the catalog is away"
    assert [submission.name for submission in catalog.submissions()] == ["ami"]
    assert not (home.state / "fragments" / "peaks").exists()
    stopped.drop("ami", patience_s=5)
    assert catalog.submissions() == ()
