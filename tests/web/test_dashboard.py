"""The dashboard in a real browser, over a real controller and a catalog filled by hand."""

from __future__ import annotations

import time
from statistics import median
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from control.rows import RowWriter
from penstock.channels.durable import write_record
from penstock.errors import InputError
from waiting import until
from web.browser import NARROW, Browser
from web.simulated import Simulated

pytestmark = pytest.mark.system
PAGES = ("overview", "graph", "moves", "resilience", "queries", "nodes")
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
# From an event until the browser has painted what came of it.
TIMED = """
const done = arguments[arguments.length - 1], begun = performance.now();
(new Function(arguments[0]))();
requestAnimationFrame(() => { const port = new MessageChannel();
  port.port1.onmessage = () => done(performance.now() - begun); port.port2.postMessage(0); });
"""


def own_host(city: Simulated) -> str:
    return urlsplit(city.client.url).netloc


def test_the_link_leaves_nothing_in_the_address(page: Browser, city: Simulated) -> None:
    assert page.driver.current_url in (f"{city.client.url}/", f"{city.client.url}/#/overview")
    assert page.driver.execute_script("return document.cookie") == ""
    (cookie,) = page.driver.get_cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert city.home.token() not in str(cookie)


def test_every_page_shows_the_system(page: Browser, city: Simulated) -> None:
    words = {
        "overview": "20 of 20",
        "graph": "meters0",
        "moves": "Nothing has been moved yet",
        "resilience": "of all rate mixes",
        "queries": "event time",
        "nodes": "n20",
    }
    for name in PAGES:
        page.page(name)
        page.sees(words[name], 30)
        page.shoot(f"many-{name}")
    assert page.console() == []
    assert page.hosts() <= {own_host(city), "new-tab-page"}


def test_two_hundred_fragments_are_not_sluggish(page: Browser) -> None:
    page.page("graph")
    page.one("[data-unit=q77]")
    page.page("overview")
    page.one(".figures")
    steps = {
        "graph": "location.hash = '#/graph'",
        "choose": "document.querySelector('[data-unit=q77]')"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))",
        "queries": "location.hash = '#/queries/q9'",
        "nodes": "location.hash = '#/nodes/n07'",
        "overview": "location.hash = '#/overview'",
    }
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(5):
        for name, script in steps.items():
            if name == "choose":
                page.one("[data-unit=q77]")
            taken[name].append(page.driver.execute_async_script(TIMED, script))
    worst = {name: median(times) for name, times in taken.items()}
    assert max(worst.values()) < 100, worst


def test_following_one_query_leaves_the_others_pale(page: Browser) -> None:
    page.page("graph")
    page.one("[data-unit=q0]")
    page.choose("follow", "q6")
    page.one(".unit.dim")
    lit = {unit.get_attribute("data-unit") for unit in page.all(".unit:not(.dim)")}
    assert lit == {"q6", "meters1"}
    assert len(page.all(".edge:not(.dim)")) == 1


def test_a_refused_submission_is_told_as_the_command_line_would(
    page: Browser, city: Simulated
) -> None:
    text = "SELECT hom FROM meters0"
    with pytest.raises(InputError) as error:
        city.client.submit("wrong", "sql", text, ".")
    page.click("#submit")
    page.one("#submit-name").send_keys("wrong")
    page.one("#submit-text").send_keys(text)
    page.click("#submit-confirm")
    told = page.one("dialog .error").text
    for line in str(error.value).splitlines():
        assert line.strip(" ^") in told
    assert page.one("dialog mark").text == "hom"
    page.shoot("refused")
    page.press(Keys.ESCAPE)
    until(lambda: not page.all("dialog"))
    page.sees("wrong was not taken in", selector=".troubles")
    assert all("400 (Bad Request)" in line for line in page.console())


def test_what_would_come_of_a_query_is_seen_before(page: Browser, city: Simulated) -> None:
    page.click("#submit")
    page.one("#submit-name").send_keys("more")
    page.one("#submit-text").send_keys("SELECT home FROM q0")
    page.click("#submit-look")
    page.sees("What would come of it", selector="dialog .prospect")
    page.shoot("prospect")
    assert "more" not in [query.name for query in city.client.queries()]
    page.press(Keys.ESCAPE)
    until(lambda: not page.all("dialog"))
    assert page.console() == []


def test_texts_never_become_markup(page: Browser, city: Simulated) -> None:
    writer = RowWriter(city.home.state / "channels" / "q0", "home", "ts district kwh")
    with pytest.raises(InputError):
        city.client.submit(HOSTILE, "sql", f"SELECT '{HOSTILE}' FROM {HOSTILE}", ".")
    city.catalog.tell("submit", HOSTILE, HOSTILE)
    epoch = next(unit.epoch for unit in city.catalog.units() if unit.name == "q3")
    city.catalog.report("q3", epoch, "held back", HOSTILE)
    writer.write(HOSTILE)
    try:
        page.page("overview")
        page.sees(HOSTILE[:20], selector=".troubles")
        page.sees(HOSTILE[:20], selector=".events")
        page.page("queries/q0")
        page.sees(HOSTILE[:20], selector="#live-rows")
        page.page("queries/q3")
        page.sees(HOSTILE[:20], selector=".error")
        page.page("graph")
        page.click("[data-unit=q3]")
        page.sees(HOSTILE[:20], selector=".side")
        assert page.driver.title != "taken"
        assert page.all("img[src=x]") == []
        assert page.all("main script") == []
    finally:
        city.catalog.report("q3", epoch, "running")


STATION = {
    "deployment": "city",
    "pid": 1,
    "port": 7500,
    "broadcast": 1,
    "cycle": 12,
    "organisation": "flat",
    "open": True,
    "airtime_s": 0.9,
    "cycle_s": 2.0,
    "overloaded": False,
    "profiles": {},
    "queries": {
        "q0": {
            "cut": 1,
            "operators": 3,
            "plan": 1,
            "stream": "q0",
            "ships": ["q0_filter"],
            "listeners": 2,
            "next": 0,
            "rows": 120,
            "bytes": 4_800,
            "ended": False,
            "switches": False,
        }
    },
    "devices": [
        {
            "device": "meter-7",
            "listening": True,
            "query": "q0",
            "tuned_s": 1.5,
            "processed_s": 0.25,
            "energy_j": 0.1234,
            "missed_cycles": 1,
        }
    ],
    "batteries": {"meter-7": 7_300.0},
}


def test_broadcasts_and_devices(page: Browser, city: Simulated) -> None:
    record = city.home.broadcasts / "city.status.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    write_record(record, STATION)
    try:
        assert city.client.devices()[0].deployment == "city"
        page.page("nodes")
        page.sees("on the air 45 % of the time")
        page.sees("meter-7")
        page.sees("0.123 J")
        page.sees("2.0 h")
    finally:
        record.unlink()


def test_how_it_is_balanced_is_changed_by_clicking(page: Browser, city: Simulated) -> None:
    def chosen(policy: str) -> None:
        page.page("moves")
        page.click("#balance")
        page.sees("Now: ", selector="dialog")
        until(lambda: page.one("#balance-policy").get_attribute("value") != "")
        page.fill("#balance-policy", policy)
        page.click("#balance-confirm")

    chosen("correlatoin")
    page.sees("Did you mean correlation?", selector="dialog .error")
    page.press(Keys.ESCAPE)
    until(lambda: not page.all("dialog"))
    chosen("correlation")
    until(lambda: not page.all("dialog"))
    assert city.client.balance().policy == "correlation"
    chosen("off")
    until(lambda: city.client.balance().policy == "off")


def background(page: Browser) -> str:
    script = "return getComputedStyle(document.body).backgroundColor"
    return str(page.driver.execute_script(script))


def test_light_and_dark(page: Browser) -> None:
    page.prefer("light")
    light = background(page)
    page.prefer("dark")
    until(lambda: background(page) != light)
    dark = background(page)
    page.choose("theme", "light")
    until(lambda: background(page) == light)
    page.prefer("light")
    page.choose("theme", "dark")
    until(lambda: background(page) == dark)
    page.driver.refresh()
    page.one("main > *")
    assert background(page) == dark, "it is remembered"
    page.choose("theme", "auto")
    until(lambda: background(page) == light)
    assert page.console() == []


def focused(page: Browser) -> str:
    return str(page.driver.execute_script("return document.activeElement.outerHTML.slice(0, 200)"))


def test_with_the_keyboard_alone(page: Browser) -> None:
    def tab_to(words: str, most: int = 60) -> None:
        for _ in range(most):
            page.press(Keys.TAB)
            if words in focused(page):
                return
        raise AssertionError(f"{words} is not reached, but {focused(page)}")

    page.driver.execute_script("document.activeElement.blur()")
    tab_to("Skip to the page", 3)
    page.press(Keys.ENTER)
    assert 'id="main"' in focused(page)
    page.driver.execute_script("document.querySelector('.brand').focus()")
    tab_to('href="#/graph"')
    page.press(Keys.ENTER)
    page.one("[data-unit=meters0]")
    tab_to("data-unit")
    page.press(Keys.ENTER)
    page.one("#move-unit")
    tab_to('id="move-unit"', 300)
    page.press(Keys.ENTER)
    page.one("dialog[open]")
    tab_to('id="move-target"', 4)
    tab_to('id="move-confirm"', 4)
    page.press(Keys.ESCAPE)
    until(lambda: not page.all("dialog"))


def test_in_a_narrow_window(page: Browser) -> None:
    page.resize(*NARROW)
    for name in PAGES:
        page.page(name)
        page.one("main > *")
        assert page.overhang() <= 0, name


def test_a_node_that_falls_silent_is_a_trouble_within_seconds(
    page: Browser, city: Simulated
) -> None:
    node = next(node for node in city.catalog.nodes() if node.name == "n20")
    city.catalog.renew(node.name, node.incarnation, time.time() - 1)
    try:
        page.sees("node n20 has fallen silent", 5, selector=".troubles")
        page.sees("19 of 20", 5)
        page.shoot("silent")
    finally:
        city.catalog.renew(node.name, node.incarnation, time.time() + 3600)


def test_it_goes_on_when_the_controller_comes_back(page: Browser, city: Simulated) -> None:
    port = int(city.client.url.rpartition(":")[2])
    city.halt()
    page.sees("the controller does not answer", 10)
    page.shoot("offline")
    city.start(port)
    until(lambda: not page.all(".banner"), 20, "it goes on")
    page.sees("live", selector=".link")
    page.console()
