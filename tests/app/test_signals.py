"""Being asked to stop."""

import os
import signal
import subprocess
import sys

import pytest

from cli.shell import environment
from penstock.app.signals import StopRequest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_request_is_noted_and_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopRequest() as stop:
        assert not stop.asked
        os.kill(os.getpid(), number)
        assert stop.wait(5)
        assert stop.asked
    assert signal.getsignal(number) == before


def test_a_second_ctrl_c_leaves_at_once() -> None:
    code = """
import os, signal, time
from penstock.app.signals import StopRequest
with StopRequest():
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
"""
    left = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=30
    )
    assert left.returncode == 130
    assert left.stderr == (
        "\npenstock leaves at once; the same command goes on from the last finished batch\n"
    )


def test_a_reader_that_has_gone_raises() -> None:
    with StopRequest():
        read, write = os.pipe()
        os.close(read)
        with pytest.raises(BrokenPipeError):
            os.write(write, b"x")
        os.close(write)
