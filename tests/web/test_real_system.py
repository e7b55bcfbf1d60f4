"""The dashboard over a system that runs: every page, and all that can be done by clicking."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from waiting import until
from web.browser import NARROW, Browser
from web.plant import Plant, started_plant

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    with started_plant(tmp_path_factory.mktemp("plant")) as made:
        yield made


@pytest.fixture(scope="module")
def inside(browser: Browser, plant: Plant) -> Browser:
    """A browser that is logged in."""
    browser.wide()
    browser.go(plant.client.login_link())
    browser.one(".figures")
    return browser


@pytest.fixture
def page(inside: Browser) -> Iterator[Browser]:
    """The dashboard with nothing complained about, before a test and after it."""
    inside.wide()
    inside.console()
    yield inside
    assert inside.console() == []


def number(text: str) -> float:
    """The first number of a text; zero while it has none."""
    found = re.search(r"\d[\d,]*(\.\d+)?", text)
    return float(found[0].replace(",", "")) if found else 0.0


def test_the_overview_has_rates_latencies_and_what_is_wrong(page: Browser) -> None:
    page.page("overview")
    page.sees("2 of 2")
    until(lambda: number(page.text(".figure:nth-child(1) b")) > 100, 30, page.text)
    until(lambda: number(page.text(".figure:nth-child(4) b")) > 0, 30, page.text)
    page.sees("rows of readings could not be used", 30, selector=".troubles")
    page.one(".chart canvas")
    page.shoot("overview")


def test_the_graph_has_nodes_streams_and_shares_of_time(page: Browser) -> None:
    page.page("graph")
    page.one("[data-unit=district_load]")
    nodes = {box.get_attribute("data-node") for box in page.all(".node-box")}
    assert nodes == {"office", "north"}
    assert "shared" in str(page.one("[data-unit=readings]").get_attribute("class"))
    assert "shared" not in str(page.one("[data-unit=suspicious]").get_attribute("class"))
    until(lambda: len(page.all(".node-box .busy")) == 2, 20, "nodes say how busy they are")
    until(lambda: len(page.all(".unit .busy")) >= 7, 20, "fragments say how busy they are")
    rates = [float(rate) for rate in re.findall(r"([\d.]+)/s", page.text(".edge"))]
    assert len(rates) >= 5 and max(rates) > 50
    page.shoot("dashboard")
    page.click("[data-unit=heavy_homes]")
    page.sees("aggregate", selector=".side .operators")
    page.sees("busy", selector=".side")
    page.shoot("graph")
    page.choose("follow", "suspicious")
    page.one(".unit.dim")
    lit = {unit.get_attribute("data-unit") for unit in page.all(".unit:not(.dim)")}
    assert lit == {"suspicious", "heavy_homes", "district_load", "readings"}


def test_a_query_has_its_sql_times_rows_and_what_was_set_aside(page: Browser) -> None:
    page.page("queries/heavy_homes")
    page.sees("HAVING sum(kwh) > 1", selector=".sql")
    page.sees("limit 30.0 s", selector=".facts")
    page.sees("behind the clock", selector=".facts")
    until(lambda: number(page.text(".facts div:nth-child(4) dd")) > 1_000, 30, page.text)
    page.one("#live-rows tbody tr", 60)
    assert {"home", "district", "since", "kwh"} == set(page.text("#live-rows thead").split())
    page.shoot("query")
    page.page("queries/readings")
    page.sees("late", selector=".letters")
    page.one(".letters tbody tr")
    page.shoot("stream")


def test_resilience_cuts_the_feasible_set(page: Browser) -> None:
    page.page("resilience")
    page.sees("of all rate mixes", 150)  # Loops are compiled when they have changed.
    page.one(".cut .current")
    page.click("main input[type=checkbox]")
    page.one(".cut .rival")
    before = page.one("#axis-x").get_attribute("value")
    other = page.one("#axis-y").get_attribute("value")
    page.choose("axis-x", str(other))
    until(lambda: page.one("#axis-y").get_attribute("value") == before, 20, "axes change places")
    page.shoot("resilience")


def test_nodes_have_their_tree_their_joins_and_their_devices(page: Browser, plant: Plant) -> None:
    page.page("nodes")
    page.sees("office", selector=".tree > ul > li > a")
    below = {link.text for link in page.all(".tree ul ul > li > a")}
    assert below == {"north"}
    assert re.search(r"north\s+\d+ %", page.text(".tree"))
    groups = {part.fragment: part.groups for part in plant.client.joins()[0].parts}
    assert sorted(group for mine in groups.values() for group in mine) == [*range(24)]
    assert len(groups) == 2
    until(lambda: len(page.all(".heat-row")) == 2, 10, page.text)
    rows = page.all(".heat-row")
    shown = [len(row.find_elements("css selector", "i[class^=h]")) for row in rows]
    assert sorted(shown) == sorted(map(len, groups.values()))
    page.sees("anna", 30)
    until(lambda: re.search(r"anna\s+alarms.*\d J\s+.*\d (min|h|d)", page.text()), 30, page.text)
    page.shoot("nodes")
    page.page("nodes/north")
    page.one(".card.chosen .chart canvas")


def test_every_page_fits_a_narrow_window(page: Browser) -> None:
    page.resize(*NARROW)
    for name in ("overview", "graph", "moves", "resilience", "queries/readings", "nodes"):
        page.page(name)
        page.one("main > *")
        assert page.overhang() <= 0, name


def test_neighbours_negotiate_once_the_policy_is_changed_by_clicking(
    page: Browser, plant: Plant
) -> None:
    def balance(policy: str, settings: str = "") -> None:
        page.page("moves")
        page.click("#balance")
        page.sees("Now: ", selector="dialog")
        until(lambda: page.one("#balance-policy").get_attribute("value") != "")
        page.fill("#balance-policy", policy)
        page.fill("#balance-settings", settings)
        page.shoot("balance")
        page.click("#balance-confirm")

    balance("hierarchy", "lower=1 upper=2 every")
    page.sees("every is no setting", selector="dialog .error")
    page.press(Keys.ESCAPE)
    until(lambda: not page.all("dialog"))
    balance("hierarchy", "lower=5 upper=20 period=1s utilisation=memory budget=20k rule=wide")
    until(lambda: not page.all("dialog"), 15, page.text)
    assert plant.client.balance().policy == "hierarchy"
    page.page("nodes")
    until(lambda: page.all(".negotiation"), 60, lambda: plant.log("north")[-2_000:])
    told = plant.client.negotiations(last=50)
    assert any(record.peers[0].node in page.text(".negotiation") for record in told)
    page.shoot("tree")
    balance("off")
    until(lambda: plant.client.balance().policy == "off")
    until(lambda: not plant.catalog.moves(open_only=True), 60, "moves under way are finished")


def test_a_fragment_is_moved_by_clicking(page: Browser, plant: Plant) -> None:
    source = plant.node_of("network_peak")
    page.page("graph")
    page.click("[data-unit=network_peak]")
    page.click("#move-unit")
    page.sees("What will happen", selector="dialog")
    target = str(page.one("#move-target").get_attribute("value"))
    page.shoot("move")
    page.click("#move-confirm")
    until(lambda: not page.all("dialog"), 15, page.text)
    page.page("moves")
    page.sees(f"network_peak {source} → {target}", 20, selector=".bars")
    until(lambda: plant.client.moves(1)[-1].state == "done", 60, "it is moved")
    page.sees("done", 20, selector=".bars")
    page.sees("asked for on the dashboard")
    until(lambda: "first batch" in page.text("main"), 20, page.text)
    page.shoot("moves")
    assert plant.node_of("network_peak") == target


def test_a_query_is_submitted_and_dropped_by_clicking(page: Browser, plant: Plant) -> None:
    def submissions() -> set[str]:
        return {query.name for query in plant.client.queries()}

    page.page("nodes")
    page.click("#admit")
    page.fill("#submit-name", "evening")
    page.fill("#submit-text", "SELECT district, kwh FROM district_load WHERE kwh > 0.07")
    page.click("#submit-look")
    page.sees("What would come of it", 30, selector="dialog .prospect")
    page.sees("It goes to", selector="dialog .prospect")
    page.shoot("prospect")
    assert "evening" not in submissions()
    page.click("#submit-confirm")
    until(lambda: not page.all("dialog"), 30, page.text)
    assert "evening" in submissions()
    page.page("queries/evening")
    page.sees("WHERE kwh > 0.07", 20, selector=".sql")

    page.click("#drop")
    page.sees("Drop evening", selector="dialog h2")
    page.sees("This cannot be undone", selector="dialog")
    page.shoot("drop")
    page.press(Keys.ESCAPE)
    until(lambda: not page.all("dialog"))
    assert "evening" in submissions(), "closing the dialog drops nothing"
    page.click("#drop")
    page.click("#drop-confirm")
    until(lambda: not page.all("dialog"), 30, page.text)
    assert "evening" not in submissions()
    page.sees("Nothing of this name runs now", 20)
    assert page.all("#drop") == [], "and nothing else can be dropped in its place"
    # Its rows may have been asked for once more before.
    assert all("400 (Bad Request)" in line for line in page.console())


def test_what_others_read_is_not_dropped(page: Browser, plant: Plant) -> None:
    plant.client.submit("reader", "sql", "SELECT kwh FROM network_peak", ".")
    page.page("queries/network_peak")
    page.click("#drop")
    page.sees("It is read by reader", selector="dialog")
    page.click("#drop-confirm")
    page.sees("ami is read by reader. Drop those that read it first.", selector="dialog .error")
    page.press(Keys.ESCAPE)
    until(lambda: not page.all("dialog"))
    plant.client.drop("reader")
    assert all("400 (Bad Request)" in line for line in page.console())


def test_the_page_goes_on_when_the_controller_was_restarted(page: Browser, plant: Plant) -> None:
    page.driver.execute_script("window.stayed = true")
    plant.kill_controller()
    page.sees("the controller does not answer", 10)
    page.shoot("offline")
    plant.restart_controller()
    until(lambda: not page.all(".banner"), 20, "it goes on")
    page.sees("live", selector=".link")
    assert page.driver.execute_script("return window.stayed"), "without being loaded again"
    page.console()


def test_a_killed_node_is_a_trouble_within_seconds(page: Browser, plant: Plant) -> None:
    page.page("overview")
    os.kill(plant.pid("north"), signal.SIGKILL)
    # Whether it is gone still or back already depends on how fast it starts again.
    page.sees("fallen silent", 20, selector=".troubles")
    assert "node north ha" in page.text(".troubles")
    page.sees("penstock logs north", selector=".troubles")
    page.shoot("troubles")
