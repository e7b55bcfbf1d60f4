"""Starting a system: what is said when it does not work."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.control.home import Home
from penstock.control.launch import bring_up
from penstock.errors import InputError


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
