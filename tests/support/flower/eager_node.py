"""Flower's SuperNode, which asks for work more often.

An idle SuperNode asks for work every three seconds, which cannot be configured. Rounds of tests
would mostly wait for that. A request costs processor time of the node and the SuperLink, so this
node asks often for some seconds after its last work, and then less often. Everything else is as
``cafe federate up`` starts it.
"""

from __future__ import annotations

import importlib
import sys
import time
from types import SimpleNamespace
from typing import Any

from cafe.flower import program
from cafe.flower.node_polling import IDLE
from cafe.flower.task_signal import LOOP

SHORT, LONG = 0.25, 1.0  # seconds
EAGER = 16  # how many short pauses follow the last work


class Pauses:
    """Shortens the pauses of Flower's loop."""

    def __init__(self) -> None:
        self._idle = 0

    def sleep(self, seconds: float) -> None:
        """Wait for a part of these seconds."""
        self._idle = self._idle + 1 if seconds >= IDLE else 0
        time.sleep(LONG if self._idle > EAGER else SHORT)


def eager_supernode(command: list[str]) -> list[str]:
    """The command of an eager node instead of Flower's; that of an eager node stays as it is."""
    if __file__ in command:
        return command
    return [sys.executable, __file__, *command[command.index("flower-supernode") :]]


def main() -> None:
    """Run ``cafe.flower.program`` with shorter pauses."""
    loop: Any = importlib.import_module(LOOP)
    loop.time = SimpleNamespace(sleep=Pauses().sleep)
    program.main()


if __name__ == "__main__":
    main()
