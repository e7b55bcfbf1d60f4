"""The wheel that is built: the dashboard is in it, and is served from it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

import penstock
from penstock.control.home import Home
from penstock.control.launch import CONTROLLER, is_up
from penstock.web.pages import assets
from waiting import until

pytestmark = pytest.mark.system
ROOT = Path(penstock.__file__).parents[2]


def test_the_page_is_served_from_the_wheel(tmp_path: Path) -> None:
    built = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(built, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(unpacked)
    assert {f"penstock/web/assets/{path}" for path in assets()} <= names
    home = Home(tmp_path / "system")
    home.prepare()
    environment = os.environ | {"PYTHONPATH": str(unpacked)}
    command = [sys.executable, "-m", CONTROLLER, str(home.path), "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment) as controller:
        try:
            until(lambda: is_up(home), 60, "the controller answers")
            compare(home)
        finally:
            controller.terminate()


def compare(home: Home) -> None:
    """Asks for every file, and looks whether it is the one of the sources."""
    headers = {"Authorization": f"Bearer {home.token()}"}
    with httpx.Client(base_url=home.address().url, headers=headers, trust_env=False) as client:
        assert client.get("/").content == assets()["index.html"].content
        for path, one in assets().items():
            assert client.get(f"/assets/{path}").content == one.content
