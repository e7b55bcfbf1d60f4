"""Starting a system: what is said when it does not work."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.control import launch
from penstock.control.home import Home
from penstock.control.launch import DEFAULT_PORT, bring_up
from penstock.errors import InputError, RunError, UnreachableError


@pytest.mark.system
def test_a_port_that_is_taken(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError) as error:
            bring_up(home, [], port)
    assert str(error.value) == (
        f"the controller did not start: port {port} cannot be used: Address already in use. "
        f"Choose another with --port. Details are in {home.log('controller')}."
    )
    assert error.value.exit_code == 1


def test_another_start_under_way(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    with home.starting(), pytest.raises(InputError, match="another penstock up is starting"):
        bring_up(home, [])


def test_it_comes_up_on_the_port_that_was_asked_for_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, tried = Home(tmp_path / "system"), []

    def start(_: Home, port: int, __: float) -> None:
        tried.append(port)
        if port != 7_403:
            raise RunError("taken")

    monkeypatch.setattr(launch, "_start_controller", start)
    for port in (None, 7_402, None):
        with pytest.raises(RunError, match="taken"):
            bring_up(home, [], port)
    with pytest.raises(UnreachableError, match="no controller"):
        bring_up(home, [], 7_403)
    with pytest.raises(UnreachableError, match="no controller"):
        bring_up(home, [], None)
    assert tried == [DEFAULT_PORT, 7_402, DEFAULT_PORT, 7_403, 7_403]
