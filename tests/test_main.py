"""Ctrl-C while a command starts."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.processes import accept_interrupts

# Runs ``cafe``; when a certain module is imported for the first time, it waits for a signal.
PAUSED = """
import runpy, signal, sys

class Pause:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            print("waiting", flush=True)
            signal.pause()

where = sys.argv.pop(1)
sys.meta_path.insert(0, Pause())
runpy.run_module("cafe", run_name="__main__", alter_sys=True)
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


def interrupt(where: str, *words: str) -> tuple[int, str]:
    """The exit code and the errors of a command that is interrupted as it imports a module."""
    with subprocess.Popen(
        [sys.executable, "-c", PAUSED, where, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=accept_interrupts,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    return process.returncode, errors


@pytest.mark.parametrize("where", ["cafe.cli", "typer", "cafe.cli.planning", "cafe.cli.running"])
def test_interrupt_while_importing_the_command_line(where: str) -> None:
    assert interrupt(where, "--version") == (130, "Stopped.\n")


@pytest.mark.parametrize("where", ["numpy", "cafe.planner", "scipy"])
def test_interrupt_while_importing_a_command(where: str) -> None:
    words = "plan --clients 100 --rate 1 --waste-price 1 --broadcast-price 1"
    assert interrupt(where, *words.split()) == (130, "Stopped.\n")
