"""Waiting for events, with limits that a busy machine keeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT = 600.0  # seconds for any one event; nothing waits that long unless something is broken
T = TypeVar("T")


def wait_until(
    found: Callable[[], T], explain: Callable[[], object] = str, pause: float = 0.1
) -> T:
    """Poll until ``found()`` is true, and return its value; fail after ``LIMIT`` seconds."""
    until = time.monotonic() + LIMIT
    while not (value := found()):
        assert time.monotonic() < until, f"Not within {LIMIT:.0f} s. {explain()}"
        time.sleep(pause)
    return value


def unhurried(seconds: float) -> float:
    """A deadline for clients on this machine: longer than ``seconds`` if it is overloaded.

    For deadlines that some client misses on purpose, while the others must keep them. It grows with
    the time that a process waits for a processor, which it measures for half a second.
    """
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() < began + 0.5:
        pass
    slower = (time.monotonic() - began) / max(time.process_time() - used, 0.01)
    return seconds * min(max(slower, 1.0), 6.0)
