"""A real browser: Debian's chromium, driven by selenium, that tells what it loaded and logged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from waiting import until

_MISSING = "no chromium here: apt-get install chromium chromium-driver"
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


class Browser:
    """A browser with a profile of its own."""

    def __init__(self, driver: webdriver.Chrome, shots: Path) -> None:
        self.driver = driver
        self._shots = shots
        self._log: list[dict[str, Any]] = []

    def go(self, url: str) -> None:
        self.driver.get(url)

    def page(self, name: str) -> None:
        """Opens one of the dashboard's pages by its link."""
        self.driver.execute_script(f"location.hash = '#/{name}'")

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str, patience_s: float = 15.0) -> WebElement:
        """An element, as soon as it is there."""
        until(lambda: self.all(selector), patience_s, lambda: f"{selector} in {self.text()[:600]}")
        return self.all(selector)[0]

    def text(self, selector: str = "body") -> str:
        """What people see of something: its words."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join('\\n')"
        )
        return str(self.driver.execute_script(script, selector))

    def sees(self, words: str, patience_s: float = 15.0, selector: str = "body") -> None:
        """Waits for words to be on the page."""
        until(
            lambda: words in self.text(selector),
            patience_s,
            lambda: f"{words!r} in {self.text(selector)[:800]!r}",
        )

    def shoot(self, name: str) -> None:
        """Keeps a picture for people to look at."""
        self._shots.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(self._shots / f"{name}.png"))

    def console(self) -> list[str]:
        """What the page has complained about since the last call."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def hosts(self) -> set[str]:
        """All hosts that were asked for anything since the last call."""
        found = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = urlsplit(message["params"]["request"]["url"])
                if url.scheme not in ("data", "blob", "about", "chrome"):
                    found.add(url.netloc)
        return found


@contextmanager
def started(profile: Path, shots: Path) -> Iterator[Browser]:
    """A browser for some tests; skips them where there is none."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip(_MISSING)
    options = Options()
    options.binary_location = program
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}", "--window-size=1400,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options, Service(driver))
    try:
        yield Browser(made, shots)
    finally:
        made.quit()
