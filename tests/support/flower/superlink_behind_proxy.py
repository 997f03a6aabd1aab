"""Flower's SuperLink whose own processes, such as a run's server, connect to it through a proxy.

``python -m tests.support.flower.superlink_behind_proxy PROXY OPTIONS...``: the SuperLink tells the
processes that it starts its true address; here they are told the proxy's.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from cafe.flower import program

OPTION = "--runtime-api-address"


def main() -> None:
    """Start the SuperLink."""
    proxy, *words = sys.argv[1:]
    start = subprocess.Popen.__init__

    def start_behind_proxy(self: Any, command: Any, *args: Any, **kwargs: Any) -> None:
        if OPTION in command:
            at = command.index(OPTION) + 1
            command = [*command[:at], proxy, *command[at + 1 :]]
        start(self, command, *args, **kwargs)

    subprocess.Popen.__init__ = start_behind_proxy  # type: ignore[assignment,method-assign]
    sys.argv = ["program", "flower-superlink", *words]
    program.main()


if __name__ == "__main__":
    main()
