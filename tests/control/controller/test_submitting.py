"""Taking in what people ask for, and saying clearly why not."""

from __future__ import annotations

import pytest

from control.controller.facts import files, readers, refused, story, the
from control.made_up import AMI
from control.toys import TroubledCatalog, raising
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.records import UnitRecord
from penstock.errors import InputError, UnreachableError


def test_the_units_are_recorded(controller: Controller, catalog: TroubledCatalog) -> None:
    units = controller.submit("ami", "yaml", AMI, "/data", 5_000_000)
    assert [unit.name for unit in units] == ["readings", "peaks"]
    assert catalog.units() == (
        UnitRecord("peaks", "fragment", 1, planned="a"),
        UnitRecord("readings", "intake", 1),
    )
    (asked,) = catalog.submissions()
    assert (asked.id, asked.name, asked.kind) == (1, "ami", "yaml")
    assert (asked.text, asked.folder, asked.max_latency_us) == (AMI, "/data", 5_000_000)
    assert story(catalog) == ["submit ami: submitted with 2 units"]


def test_what_they_will_read_is_kept_from_now_on(ami: Controller) -> None:
    ami.submit("q", "sql", "SELECT home FROM peaks", ".")
    assert readers(ami, "readings") == ["peaks"]
    assert readers(ami, "peaks") == ["q"]


def test_where_they_are_written_to_run(controller: Controller, catalog: TroubledCatalog) -> None:
    text = AMI.replace("SELECT ts, home, kwh FROM readings WHERE kwh > 3", "{PEAKS}")
    pinned = text.replace("{PEAKS}", "{sql: SELECT ts FROM readings, on: b}")
    controller.submit("ami", "yaml", pinned, ".")
    assert the(catalog, "peaks").pinned == "b"
    assert (
        refused(
            lambda: controller.submit(
                "two", "yaml", "queries:\n  q: {sql: SELECT ts FROM peaks, on: bb}", "."
            )
        )
        == "no node bb. There are a, b, z. Did you mean b?"
    )


def test_an_engine_that_cannot_run_it(ami: Controller) -> None:
    asked = "queries:\n  q: {sql: SELECT home FROM peaks, engine: light}\n"
    assert refused(lambda: ami.submit("two", "yaml", asked, ".")) == (
        "query q asks for the light engine, which cannot run it: it has no windowed aggregate. "
        "Leave engine out, or say engine: native."
    )


def test_the_same_name_again(ami: Controller, catalog: TroubledCatalog) -> None:
    before = catalog.changes()
    assert refused(lambda: ami.submit("ami", "sql", "SELECT home FROM peaks", ".")) == (
        "ami is already running. Give it another name, drop the other first, or replace it: "
        "submit --replace."
    )
    assert catalog.changes() == before


def test_nothing_to_do(controller: Controller) -> None:
    controller.submit("ami", "yaml", AMI, ".")
    nowhere = "queries:\n  q: {sql: SELECT home FROM peaks, to: none}\n"
    assert refused(lambda: controller.submit("two", "yaml", nowhere, ".")) == (
        "two has no queries whose results go anywhere, and no streams for others. "
        "Add a query, or give one that has to: none a destination."
    )


def test_streams_alone_wait_until_something_reads_them(
    controller: Controller, catalog: TroubledCatalog
) -> None:
    (readings,) = controller.submit("ami", "yaml", AMI[: AMI.index("queries:")], ".")
    assert (readings.name, readings.is_unread) == ("readings", True)
    controller.tick()
    assert (the(catalog, "readings").node, the(catalog, "readings").is_unread) == (None, True)
    controller.submit("q", "sql", "SELECT home FROM readings", ".")
    assert readers(controller, "readings") == ["q"]
    assert not the(catalog, "readings").is_unread
    controller.tick()
    assert the(catalog, "readings").node in ("a", "b")
    assert refused(lambda: controller.drop("ami")) == (
        "ami is read by q. Drop those that read it first."
    )


def test_readers_are_forgotten_if_it_cannot_be_recorded(
    ami: Controller, catalog: TroubledCatalog
) -> None:
    catalog.before["add"] = raising(UnreachableError("the catalog is away"))
    query = "SELECT home FROM peaks"
    assert refused(lambda: ami.submit("q", "sql", query, ".")) == "the catalog is away"
    assert readers(ami, "peaks") == []
    assert readers(ami, "readings") == ["peaks"]


def test_names_that_cannot_be_part_of_an_address(controller: Controller) -> None:
    for name in ("", "../x", "a/b", ".hidden", "a b", "a\0b", "a\n", "x" * 201):
        assert refused(lambda name=name: controller.submit(name, "yaml", AMI, ".")) == (  # type: ignore[misc]
            f"{name!r} cannot name a submission. "
            "Use up to 200 letters, digits, -, . and _, starting with a letter or a digit."
        )


def test_names_that_can(ami: Controller) -> None:
    for k, name in enumerate(("ami-2", "v1.2", "größe", "7", "x" * 200)):
        query = f"queries:\n  q{k}: SELECT home FROM peaks\n"
        assert ami.submit(name, "yaml", query, ".")


def test_what_is_wrong_with_it_is_told_and_nothing_is_kept(
    controller: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    for wrong, text in (
        (AMI.replace("kwh > 3", "khw > 3"), "no column khw"),
        (f"{AMI}placement: nowhere", "no placement strategy nowhere"),
        (f"{AMI}balance: {{policy: chaos}}", "no balancing policy chaos"),
        (f"{AMI}balance: {{pace: 1}}", "balance has no setting pace"),
        (f"{AMI}balance: {{samples: some}}", "samples of balance is some. Give a number."),
        (f"{AMI}balance: {{samples: 0}}", "is 0. Give a whole number above zero."),
        (f"{AMI}balance: {{every: soon}}", "soon"),
        (f"{AMI}balance: {{most_load: high}}", "most_load of balance is high. Give a number."),
    ):
        assert text in refused(lambda wrong=wrong: controller.submit("ami", "yaml", wrong, "."))  # type: ignore[misc]
    assert catalog.submissions() == ()
    assert files(home) == []


def test_one_takes_the_place_of_another(ami: Controller, catalog: TroubledCatalog) -> None:
    for name in ("peaks", "readings"):
        catalog.release(name, 1)
    before = catalog.units()
    with pytest.raises(InputError, match="no column hom"):
        ami.submit("ami", "yaml", AMI.replace("home", "hom"), ".", replace=True)
    assert catalog.units() == before, "the old one goes on"
    ami.submit("ami", "yaml", AMI.replace("peaks", "tops"), ".", replace=True)
    assert {unit.name for unit in catalog.units()} == {"readings", "tops"}
    assert [submission.name for submission in catalog.submissions()] == ["ami"]


def test_what_others_read_is_not_replaced(ami: Controller, catalog: TroubledCatalog) -> None:
    ami.submit("q", "sql", "SELECT home FROM peaks", ".")
    before = catalog.units()
    assert refused(lambda: ami.submit("ami", "yaml", AMI, ".", replace=True)) == (
        "ami is read by q. Drop those that read it first."
    )
    assert catalog.units() == before
