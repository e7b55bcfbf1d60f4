"""The dashboard over a system that runs: rows, a move by clicking, a node that is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import penstock as ps
from penstock.control.client import Client
from penstock.control.home import Home
from waiting import until
from web.browser import Browser

pytestmark = pytest.mark.system
METERS = """
streams:
  readings: {source: {generate: meters, homes: 40, speedup: 1800}, lateness: 2min}
queries:
  heavy:
    sql: SELECT ts, home, district, kwh FROM readings WHERE kwh > 0.2
    max_latency: 20s
  hourly:
    sql: >
      SELECT district, window.end AS at, sum(kwh) AS kwh FROM heavy
      GROUP BY district, window(ts, '1 hour')
"""


@pytest.mark.timeout(280)
def test_a_system_that_runs(browser: Browser, tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    with ps.local(nodes=2, home=home.path) as system:
        system.client.submit("ami", "yaml", METERS, str(tmp_path))
        browser.driver.set_window_size(1400, 1000)
        browser.go(system.client.login_link())
        browser.one(".figures")
        browser.console()
        until(lambda: rates(system.client), 90, "rows are read")
        every_page(browser)
        move_by_clicking(browser, system.client)
        killed(browser, system.client)


def rates(client: Client) -> bool:
    found = [
        fragment.status for fragment in client.system().fragments if fragment.kind == "fragment"
    ]
    return all(status is not None and status.batches > 2 for status in found)


def every_page(page: Browser) -> None:
    page.page("overview")
    page.sees("2 of 2")
    page.sees("hourly")
    page.shoot("overview")
    page.page("graph")
    page.one("[data-unit=hourly]")
    page.sees("readings")
    page.shoot("graph")
    page.page("queries/heavy")
    page.sees("limit 20.0 s")
    page.one("#live-rows tbody tr")
    page.sees("kwh")
    page.shoot("queries")
    page.page("resilience")
    page.sees("of all rate mixes", 60)
    page.shoot("resilience")
    page.page("nodes")
    page.sees("n2")
    page.shoot("nodes")
    assert page.console() == []


def move_by_clicking(page: Browser, client: Client) -> None:
    where = {fragment.name: fragment.node for fragment in client.system().fragments}
    target = "n2" if where["hourly"] == "n1" else "n1"
    page.page("graph")
    page.one("[data-unit=hourly]").click()
    page.one("#move-unit").click()
    page.sees("What will happen", selector="dialog")
    page.shoot("move")
    page.one("#move-confirm").click()
    until(lambda: not page.all("dialog"))
    page.page("moves")
    page.sees("hourly", 20, selector=".bars")
    until(lambda: client.moves(1)[-1].state == "done", 60, "it is moved")
    page.sees("done", 20, selector=".bars")
    page.sees("asked for on the dashboard")
    page.shoot("moves")
    now = {fragment.name: fragment.node for fragment in client.system().fragments}
    assert now["hourly"] == target


def killed(page: Browser, client: Client) -> None:
    page.page("overview")
    node = next(one for one in client.system().nodes if one.name == "n2")
    os.kill(node.pid, signal.SIGKILL)
    page.sees("node n2 has fallen silent", 20, selector=".troubles")
    page.shoot("troubles")
    until(lambda: "node n2" not in page.text(".troubles"), 60, "it is up again")
