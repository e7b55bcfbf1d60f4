"""Ports."""

import socket

import pytest

from penstock.app.ports import check_port, free_port, is_free
from penstock.errors import UnreachableError, UsageError


def test_a_port_in_use_is_named_with_another_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        other = free_port(port)
        with pytest.raises(UnreachableError) as raised:
            check_port(port, "--spark-ui")
    assert str(raised.value) == (
        f"port {port} for --spark-ui cannot be used: another program has it. "
        f"Stop it, or use another port: --spark-ui {other}"
    )
    check_port(port, "--spark-ui")


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_not_a_port(port: int) -> None:
    with pytest.raises(UsageError) as raised:
        check_port(port, "--spark-ui")
    assert str(raised.value) == (
        f"--spark-ui {port} is not a port. Give a number between 1024 and 65535."
    )
