"""Commands that ask a controller: by its address, and what the shell completes from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.shell import Here
from cli.test_completion import completed
from web.simulated import Simulated, simulated

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    with simulated(tmp_path_factory.mktemp("town"), nodes=2, streams=1, queries=2) as made:
        yield made


def test_a_system_is_reached_by_its_address(tmp_path: Path, here: Here, town: Simulated) -> None:
    reached = {"PENSTOCK_URL": town.client.url, "PENSTOCK_TOKEN": town.home.token()}
    listed = here("ls", "--json", folder=tmp_path, **reached)
    assert [load["name"] for load in json.loads(listed.stdout)] == ["city"]
    given = ("--url", town.client.url, "--token", "wrong")
    refused = here("ls", "--json", *given, folder=tmp_path)
    assert refused.returncode == 3
    assert json.loads(refused.stdout)["error"] == "the token is missing or wrong"


def test_names_of_a_running_system(tmp_path: Path, here: Here, town: Simulated) -> None:
    home = ("--home", str(town.home.path))
    assert set(completed(here, tmp_path, "move", *home, "q")) == {"q0", "q1"}
    assert completed(here, tmp_path, "move", *home, "q0", "n") == ["n01", "n02"]
    assert completed(here, tmp_path, "drop", *home, "c") == ["city"]
    assert completed(here, tmp_path, "rows", *home, "met") == ["meters0"]
    assert completed(here, tmp_path, "logs", *home, "c") == ["controller"]
    assert completed(here, tmp_path, "drop", "--home", str(tmp_path), "c") == []
