"""How often an idle SuperNode asks the SuperLink for work.

Flower's SuperNode asks every three seconds, which cannot be configured. Each request costs the
SuperLink about 10 ms of CPU time, so a few hundred idle nodes take all that its one process has.
With many nodes, set ``CAFE_NODE_POLL`` to more seconds in the environment of the nodes that
``cafe.flower.program`` starts. The deadline of a round must be much longer than this.
"""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from cafe.errors import InputError
from cafe.flower.task_signal import LOOP

VARIABLE = "CAFE_NODE_POLL"
IDLE = 3.0  # Flower's pause without work; its other pauses are shorter, and between steps of work
SPREAD = 0.2  # a pause differs by at most this share, so that nodes do not ask at the same time


def read_poll(environment: Mapping[str, str]) -> float | None:
    """The seconds between two requests for work; None if the environment does not set them.

    Example:
        >>> from cafe.flower.node_polling import read_poll
        >>> read_poll({"CAFE_NODE_POLL": "15"})
        15.0
    """
    text = environment.get(VARIABLE, "")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 600.0:
        raise InputError(
            f"{VARIABLE} must be a number of seconds from 0.1 to 600: how often an idle node asks "
            f"for work. Got {text!r}."
        )
    return seconds


def poll_every(seconds: float) -> None:
    """Have the SuperNode of this process ask for work about every ``seconds`` while it is idle."""
    loop: Any = importlib.import_module(LOOP)

    def sleep(pause: float) -> None:
        if pause >= IDLE:
            pause = seconds * random.uniform(1.0 - SPREAD, 1.0 + SPREAD)
        time.sleep(pause)

    loop.time = SimpleNamespace(sleep=sleep)
