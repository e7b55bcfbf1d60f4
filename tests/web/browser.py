"""A real browser: Debian's chromium, driven by selenium, that tells what it loaded and logged."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from waiting import until

_MISSING = "no chromium here: apt-get install chromium chromium-driver"
WIDE, NARROW = (1440, 900), (390, 1400)
_KINDS = (("", "light", WIDE), ("-dark", "dark", WIDE), ("-narrow", "light", NARROW))
_DRAWN_S = 0.6
"""How long charts take to be drawn anew; only pictures need them to be."""
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
    """A browser with a profile of its own; with ``shots`` it keeps pictures for people there."""

    def __init__(self, driver: webdriver.Chrome, shots: Path | None) -> None:
        self.driver = driver
        self._shots = shots

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
            "return [...document.querySelectorAll(arguments[0])]"
            ".map(e => e.innerText ?? e.textContent).join('\\n')"  # Pictures have no inner text.
        )
        return str(self.driver.execute_script(script, selector))

    def sees(self, words: str, patience_s: float = 15.0, selector: str = "body") -> None:
        """Waits for words to be on the page."""
        until(
            lambda: words in self.text(selector),
            patience_s,
            lambda: f"{words!r} in {self.text(selector)[:800]!r}",
        )

    def click(self, selector: str) -> None:
        """Clicks on something as soon as that can do anything."""
        until(lambda: self._is_clicked(selector), 15, selector)

    def _is_clicked(self, selector: str) -> bool:
        try:
            element = self.one(selector)
            if not element.is_enabled():
                return False
            element.click()
        except StaleElementReferenceException:
            return False  # It was drawn anew just now.
        return True

    def fill(self, selector: str, words: str) -> None:
        """Writes into a field what shall be in it, as people do: all is marked, then replaced.

        What is cleared without a key is there again when the page is drawn anew.
        """
        self.one(selector).send_keys(Keys.CONTROL, "a")
        self.one(selector).send_keys(words or Keys.DELETE)
        until(lambda: self.one(selector).get_attribute("value") == words, 5, selector)

    def choose(self, id: str, value: str) -> None:
        """Chooses one of the values of a list."""
        script = (
            "const s = document.getElementById(arguments[0]); s.value = arguments[1]; "
            "s.dispatchEvent(new Event('change', {bubbles: true}))"
        )
        self.one(f"#{id}")
        self.driver.execute_script(script, id, value)

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def resize(self, width: int, height: int) -> None:
        """Gives the page a window of this size; smaller than a desktop's may be, too."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def wide(self) -> None:
        self.resize(*WIDE)

    def prefer(self, scheme: str) -> None:
        """Has the machine's user prefer light or dark pages."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def overhang(self) -> int:
        """By how much the page is wider than its window."""
        script = "const e = document.scrollingElement; return e.scrollWidth - e.clientWidth"
        return int(self.driver.execute_script(script))

    def shoot(self, name: str) -> None:
        """Keeps pictures of the page, if somebody wants to look: light, dark and narrow."""
        if self._shots is None:
            return
        self._shots.mkdir(parents=True, exist_ok=True)
        for kind, scheme, (width, height) in _KINDS:
            self.prefer(scheme)
            self.resize(width, height)
            time.sleep(_DRAWN_S)
            self.driver.save_screenshot(str(self._shots / f"{name}{kind}.png"))
        self.prefer("light")
        self.wide()

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
def started(profile: Path, shots: Path | None) -> Iterator[Browser]:
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
