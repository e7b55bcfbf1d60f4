"""A browser for the tests of the dashboard, and the many nodes it looks at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from web.browser import Browser, started
from web.simulated import Simulated, simulated


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    shots = os.environ.get("PENSTOCK_SHOTS")
    profile = tmp_path_factory.mktemp("browser") / "profile"
    with started(profile, Path(shots) if shots else None) as made:
        yield made


@pytest.fixture(scope="package")
def city(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """Two hundred fragments on twenty nodes."""
    with simulated(tmp_path_factory.mktemp("city")) as made:
        yield made


@pytest.fixture
def page(browser: Browser, city: Simulated) -> Browser:
    """The dashboard of the city, in a wide window, light, with nothing complained about yet."""
    browser.wide()
    browser.go("about:blank")
    browser.console(), browser.hosts()
    browser.go(city.client.login_link())
    browser.one(".figures")
    return browser
