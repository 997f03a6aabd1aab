"""Scripts that are run in new processes, and how new processes treat interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


def outputs_by_hash_seed(script: str) -> set[str]:
    """The outputs of a script in processes with different hash seeds; one if all are equal."""
    return {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }


def accept_interrupts() -> None:
    """Let a new process receive SIGINT, as it does in a terminal.

    A shell without job control starts background processes that ignore SIGINT, and the processes
    that the tests start would inherit this.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def is_running(pid: int) -> bool:
    """Whether a process of Linux runs; zombie processes do not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
